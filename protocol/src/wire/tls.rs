//! Who may be at the other end. TLS 1.3 only, no resumption, so that every connection is checked; no client
//! certificates: a node proves its key over the exporter of the connection (S-04).

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::id::{Digest, Millis};
use crate::proof::{Binding, Purpose};

/// The name in the control plane's certificate, whatever address was dialled.
pub const SERVER_NAME: &str = "control.tenure.internal";
/// The protocol of the link.
pub const ALPN_LINK: &[u8] = b"tenure/1";
/// The protocol of the API.
pub const ALPN_API: &[u8] = b"tenure-api/1";

/// Whom a host believes.
#[derive(Debug, Clone)]
pub enum Trust {
    /// The root of this digest, among those the server presents. It only selects: the leaf must verify to it (S-01).
    ByDigest(Digest),
    /// These roots, DER, given in an authenticated session.
    Roots(Vec<Vec<u8>>),
}

/// A configuration could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate, a key, or both together are not usable.
    #[error("the TLS certificate or key cannot be used")]
    Unusable(#[from] rustls::Error),
    /// No root to believe.
    #[error("there is no certificate authority to verify against")]
    NoRoots,
}

/// The control plane's side: its leaf, then its CA, and the leaf's key.
pub fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[u8],
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// The host's side. `no_earlier` is the latest moment it has reason to believe in (its build date, the last time the
/// control plane told): certificates are judged at the later of it and the system's clock (S-18).
pub fn client(trust: Trust, no_earlier: Millis, alpn: &[u8]) -> Result<Arc<ClientConfig>, TlsError> {
    let verifier = match trust {
        Trust::ByDigest(digest) => Pinned::ByDigest(digest),
        Trust::Roots(roots) => Pinned::Roots(webpki(roots.into_iter().map(CertificateDer::from))?),
    };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier {
            pinned: verifier,
            no_earlier,
            schemes: schemes(),
        }))
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// What binds a proof to this connection: its TLS exporter, with the purpose as context. Equal at both ends, and on
/// no other connection.
pub fn binding<Data>(
    connection: &rustls::ConnectionCommon<Data>,
    purpose: Purpose,
) -> Result<Binding, rustls::Error> {
    connection.export_keying_material(
        [0; 32],
        b"EXPORTER-tenure-node-key-v1",
        Some(purpose.as_str().as_bytes()),
    )
}

/// Whether an error of a handshake says that the other end is not the control plane that was expected, as against a
/// network that failed.
pub fn is_wrong_certificate(error: &std::io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some_and(|error| {
        matches!(error, rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
    })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn schemes() -> rustls::crypto::WebPkiSupportedAlgorithms {
    rustls::crypto::ring::default_provider().signature_verification_algorithms
}

fn webpki(
    roots: impl Iterator<Item = CertificateDer<'static>>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root)?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider())
        .build()
        .map_err(|_| TlsError::NoRoots)
}

#[derive(Debug)]
enum Pinned {
    ByDigest(Digest),
    Roots(Arc<WebPkiServerVerifier>),
}

/// Verifies a leaf by name, use, time and signature up to a pinned root, and nothing else.
#[derive(Debug)]
struct Verifier {
    pinned: Pinned,
    no_earlier: Millis,
    schemes: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        presented: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let no_earlier = Duration::from_millis(u64::try_from(self.no_earlier.0).unwrap_or(0));
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()).max(no_earlier));
        match &self.pinned {
            Pinned::Roots(verifier) => verifier.verify_server_cert(leaf, &[], name, ocsp, now),
            Pinned::ByDigest(digest) => {
                let root = presented
                    .iter()
                    .find(|certificate| Digest::of(certificate.as_ref()) == *digest)
                    .ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
                let unusable = |_| rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
                let verifier = webpki(std::iter::once(root.clone().into_owned())).map_err(unusable)?;
                verifier.verify_server_cert(leaf, &[], name, ocsp, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::PeerIncompatible(rustls::PeerIncompatible::Tls13RequiredForQuic))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, leaf, signature, &self.schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
