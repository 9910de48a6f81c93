//! The keys of a control plane: its certificate authority and the master key of its tokens. Made once, at the first
//! start, each a file of mode 0600 beside the store; never stored in it, never replaced where one is missing. Without the
//! authority nothing is served; without the master key what needs none goes on (N-04).
//! The leaf that serves the link is made anew at each start and kept in memory only. The daemon calls it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tenure_actors::file::{self, FileError, Links};
use tenure_protocol::enrolment::Root;
use tenure_protocol::id::Digest;
use tenure_protocol::token::Signer;
use tenure_protocol::wire::tls::{self, ALPN_LINK, SERVER_NAME};
use zeroize::Zeroizing;

use crate::ground::{Ground, GroundError, write_whole};

/// What the files hold, ready to be used.
pub struct Keys {
    /// Makes and judges tokens; without a master key it refuses both.
    pub signer: Signer,
    /// Why there is no master key; none: there is one.
    pub no_master_key: Option<KeyError>,
    /// The authority that hosts pin: the first, and so far the only one (S-17).
    pub root: Root,
    /// What serves the link: a leaf of that authority, and the authority in the chain behind it.
    pub server: Arc<rustls::ServerConfig>,
}

/// Why there are no keys to work with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A store is there, and a key that was made with it is not.
    #[error("the store is there, and {} is missing beside it", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file is there and is not what it should be.
    #[error("{} cannot be read as a key of ours", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else could have put it there.
    #[error("{} belongs to user {owner}, who is neither root nor the user this runs as", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The number of that user.
        owner: u32,
    },
    /// A file is there and the system does not let us read it, or it is no file.
    #[error(transparent)]
    Unreadable(FileError),
    /// A file could not be written.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    Randomness(#[source] getrandom::Error),
    /// A certificate could not be made.
    #[error("a certificate could not be made")]
    Certificate(#[source] rcgen::Error),
    /// A certificate or key was made and cannot be served.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
}

/// Which key files are there.
pub fn found(ground: &Ground) -> Vec<PathBuf> {
    files(ground).into_iter().filter(|path| path.exists()).collect()
}

fn files(ground: &Ground) -> [PathBuf; 3] {
    [ground.ca_key(), ground.ca_certificate(), ground.master_key()]
}

/// Makes all keys. Called only while the store has no identity yet; what an interrupted first start left is replaced.
pub fn make(ground: &Ground) -> Result<(), KeyError> {
    let key = KeyPair::generate().map_err(KeyError::Certificate)?;
    let certificate = authority().self_signed(&key).map_err(KeyError::Certificate)?;
    let mut master = Zeroizing::new([0; 32]);
    getrandom::fill(master.as_mut()).map_err(KeyError::Randomness)?;
    write_whole(&ground.ca_key(), Zeroizing::new(key.serialize_pem()).as_bytes())?;
    write_whole(&ground.ca_certificate(), certificate.pem().as_bytes())?;
    write_whole(&ground.master_key(), master.as_ref())?;
    Ok(())
}

/// Reads all keys and makes the leaf of this run.
pub fn load(ground: &Ground) -> Result<Keys, KeyError> {
    let [ca_key, ca_certificate, master_key] = files(ground);
    let damaged = |path: &PathBuf| KeyError::Damaged { path: path.clone() };
    let key_text = read(&ca_key)?;
    let key_text = std::str::from_utf8(&key_text).map_err(|_| damaged(&ca_key))?;
    let key = KeyPair::from_pem(key_text).map_err(|_| damaged(&ca_key))?;
    let certificate =
        CertificateDer::from_pem_slice(&read(&ca_certificate)?).map_err(|_| damaged(&ca_certificate))?;
    let (signer, no_master_key) = match master(&master_key) {
        Ok(master) => (Signer::new(&master), None),
        Err(error) => (Signer::without_key(), Some(error)),
    };
    Ok(Keys {
        signer,
        no_master_key,
        server: serve(key, &certificate)?,
        root: Root { number: 1, certificate: certificate.to_vec() },
    })
}

impl Keys {
    /// What an invitation names the authority by.
    pub fn ca(&self) -> Digest {
        Digest::of(&self.root.certificate)
    }
}

fn master(path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let key: Option<[u8; 32]> = read(path)?.as_slice().try_into().ok();
    // What a file system leaves of a file that was never written out is zeros, and everybody knows that key.
    let key = key.filter(|key| *key != [0; 32]);
    key.map(Zeroizing::new).ok_or_else(|| KeyError::Damaged { path: path.to_owned() })
}

/// A certificate is a kilobyte, and a key less.
const MOST_BYTES: u64 = 64 * 1024;

/// A wider mode than ours is said, and taken back where the file is ours; somebody else's file is not used.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let unreadable = |error| match error {
        FileError::Absent { path } => KeyError::Missing { path },
        other => KeyError::Unreadable(other),
    };
    let mut opened = file::open(path, Links::Followed).map_err(unreadable)?;
    if !opened.is_ours() {
        return Err(KeyError::Foreign { path: path.to_owned(), owner: opened.owner() });
    }
    if opened.is_open_to_others() {
        let mode = format!("{:04o}", opened.mode());
        let after =
            opened.close().map_or_else(|error| format!("not closed: {error}"), |()| "closed".to_owned());
        tracing::warn!(path = %path.display(), %mode, %after, "key was open to others than its owner");
    }
    opened.read(MOST_BYTES).map(Zeroizing::new).map_err(unreadable)
}

/// The authority's certificate, the same parameters each time: a leaf names its issuer by them.
fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Tenure control plane");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(params)
}

/// Hosts judge certificates at the later of their clock and what they last knew (S-18), so a beginning long past and
/// an end far ahead cost nothing; what limits a root is that it can be replaced by number.
fn valid(mut params: CertificateParams) -> CertificateParams {
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2056, 1, 1);
    params
}

fn serve(ca: KeyPair, certificate: &CertificateDer<'static>) -> Result<Arc<rustls::ServerConfig>, KeyError> {
    let key = KeyPair::generate().map_err(KeyError::Certificate)?;
    let mut leaf =
        valid(CertificateParams::new(vec![SERVER_NAME.to_owned()]).map_err(KeyError::Certificate)?);
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let leaf = leaf.signed_by(&key, &Issuer::new(authority(), ca)).map_err(KeyError::Certificate)?;
    let chain = vec![leaf.der().clone(), certificate.clone()];
    Ok(tls::server(chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into(), ALPN_LINK)?)
}

#[cfg(test)]
mod tests;
