//! The node manifest on disk. Only the host writes it, whole and at once, from what its store holds (I-03); whoever
//! looks for it hears one of four answers, of which *absent* is only one (I-04, I-05).

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tenure_protocol::manifest::{MOST_BYTES, NodeManifest, Unreadable};
use tenure_protocol::version::SOFTWARE;

use crate::identity::StoredIdentity;
use crate::steps;

/// What looking for a manifest found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// There is none.
    Absent,
    /// There is something that is not ours.
    Unreadable(Unreadable),
    /// There is one.
    Found(Box<NodeManifest>),
    /// Looking itself failed; it may be there or not.
    CouldNotLook(String),
}

/// Looks for a manifest at `path`. Changes nothing, follows no link at the path, and does not wait on a pipe.
pub fn look(path: &Path) -> Finding {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Finding::Absent,
        Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => {
            return Finding::Unreadable(Unreadable("it is a link".to_owned()));
        }
        Err(error) => return Finding::CouldNotLook(error.to_string()),
    };
    match file.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            return Finding::Unreadable(Unreadable("it is not a regular file".to_owned()));
        }
        Ok(_) => {}
        Err(error) => return Finding::CouldNotLook(error.to_string()),
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    match file.take(most).read_to_end(&mut bytes) {
        Ok(_) => match NodeManifest::parse(&bytes) {
            Ok(manifest) => Finding::Found(Box::new(manifest)),
            Err(unreadable) => Finding::Unreadable(unreadable),
        },
        Err(error) => Finding::CouldNotLook(error.to_string()),
    }
}

/// The manifest of this identity. `before`, where there is one for the same node, keeps what only a bootstrap knows.
pub fn of(identity: &StoredIdentity, before: &Finding) -> NodeManifest {
    let kept = match before {
        Finding::Found(manifest) if manifest.node_uuid == identity.node_uuid => {
            Some(manifest.as_ref().clone())
        }
        Finding::Found(_) | Finding::Absent | Finding::Unreadable(_) | Finding::CouldNotLook(_) => None,
    };
    let (provider_uuid, stack_version, components, bootstrapped_at) = match kept {
        Some(kept) => (kept.provider_uuid, kept.stack_version, kept.components, kept.bootstrapped_at),
        None => Default::default(),
    };
    NodeManifest {
        manifest: 1,
        node: identity.node.clone(),
        node_uuid: identity.node_uuid,
        provider_uuid,
        control_plane_id: Some(identity.control_plane_id),
        control_plane_url: identity.addresses.first().cloned().unwrap_or_default(),
        generation: identity.generation,
        mode: identity.mode,
        stack_version,
        host_version: SOFTWARE.to_owned(),
        components,
        enrolled_at: identity.enrolled_at,
        bootstrapped_at,
    }
}

/// The manifest could not be written. The enrolment stands; it is written again at the next start.
#[derive(Debug, thiserror::Error)]
#[error("the node manifest {} cannot be written", path.display())]
pub struct CannotWrite {
    path: PathBuf,
    source: std::io::Error,
}

/// Writes the manifest of `identity` unless it stands there already: beside, 0644, synced, renamed, and read back.
/// Answers whether anything was written.
pub fn write(path: &Path, identity: &StoredIdentity) -> Result<bool, CannotWrite> {
    let before = look(path);
    let wanted = of(identity, &before);
    if matches!(&before, Finding::Found(found) if **found == wanted) {
        return Ok(false);
    }
    let put = || {
        let bytes = wanted.encode()?;
        let beside = path.with_extension("json.new");
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        steps::MANIFEST_WRITTEN.take(|| file.write_all(&bytes))?;
        // Set, not left to the umask: anyone on the machine may read it (I-01).
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.sync_all()?;
        steps::MANIFEST_PLACED.take(|| std::fs::rename(&beside, path))?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        match look(path) {
            Finding::Found(found) if *found == wanted => Ok(true),
            Finding::Found(_) | Finding::Absent | Finding::Unreadable(_) | Finding::CouldNotLook(_) => {
                Err(std::io::Error::other("it reads back as something else"))
            }
        }
    };
    put().map_err(|source| CannotWrite { path: path.to_owned(), source })
}

#[cfg(test)]
pub(crate) mod tests;
