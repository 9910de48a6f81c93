//! `tenure-host enrol`: the token from a file or standard input, never from an argument (O-62).

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_actors::clock;
use tenure_actors::file::{self, FileError, Links};
use tenure_protocol::command_line::token_as_an_argument;
use tenure_protocol::refusal::{Explain as _, Refusal, chain};
use tenure_protocol::rescue::{Enrol, EnrolledAs};
use tenure_protocol::secret::Secret;
use tenure_protocol::token::Presented;
use zeroize::Zeroizing;

use super::ask::Host;
use super::{Done, print, runtime, show};
use crate::enrol::{self, EnrolError, Place};
use crate::ground::Ground;
use crate::link::dial::system_resolver;

const ANSWER_WITHIN: Duration = Duration::from_secs(200);

pub(super) fn enrol(ground: Ground, file: Option<PathBuf>, json: bool) -> Result<Done, Refusal> {
    let text = match file.as_deref() {
        None => return Err(token_as_an_argument()),
        Some(path) if path == Path::new("-") => from_standard_input()?,
        Some(path) => from_file(path)?,
    };
    let token = Presented::parse(&text).map_err(|error| EnrolError::from(error).refusal())?;
    let enrolled = runtime()?.block_on(hand_over(ground, token))?;
    print(json, &enrolled, || show::enrolled(&enrolled));
    Ok(Done::Well)
}

/// The daemon joins without a restart; where none runs, this command does what it would do.
async fn hand_over(ground: Ground, token: Presented) -> Result<EnrolledAs, Refusal> {
    if let Some(host) = Host::find(&ground).await? {
        let enrol = Enrol { token: Secret::new(token.text().reveal().to_owned()) };
        return host.ask(&enrol, ANSWER_WITHIN).await;
    }
    let clock = clock::system();
    let store = super::opened(&ground)?;
    let place =
        Place { ground, store: store.clone(), clock, resolve: system_resolver(), writing: Arc::default() };
    let enrolled = enrol::enrol(&place, &token).await.map_err(|error| error.refusal());
    drop(place);
    store.close();
    enrolled
}

fn from_file(path: &Path) -> Result<Zeroizing<String>, Refusal> {
    let mut opened = file::open(path, Links::Followed).map_err(unreadable)?;
    if opened.is_open_to_others() {
        return Err(Refusal::new(
            "token_file_open",
            format!(
                "the token file {} is open to others than its owner (mode {:04o})",
                path.display(),
                opened.mode()
            ),
            "whoever read it may already have joined in this machine's place; nothing was sent",
            format!(
                "close it (`chmod 600 {}`); if others may have read it, run `tenure reinvite NODE --revoke-now`",
                path.display()
            ),
        ));
    }
    text(opened.read(MOST_BYTES).map_err(unreadable)?, path)
}

fn from_standard_input() -> Result<Zeroizing<String>, Refusal> {
    let path = Path::new("standard input");
    let mut bytes = Vec::new();
    match std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes) {
        Ok(_) => text(bytes, path),
        Err(source) => Err(unreadable(FileError::Io { path: path.to_owned(), source })),
    }
}

/// A token, and what a file or terminal adds around it.
const MOST_BYTES: u64 = 4096;

fn text(bytes: Vec<u8>, path: &Path) -> Result<Zeroizing<String>, Refusal> {
    String::from_utf8(bytes).map(Zeroizing::new).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        Refusal::new(
            "not_a_token",
            format!("what was read from {} is no text", path.display()),
            "nothing was sent, and nothing was changed",
            "give the token as text, whole and alone",
        )
    })
}

fn unreadable(error: FileError) -> Refusal {
    Refusal::new(
        "token_file_unreadable",
        format!("the token cannot be read: {}", chain(&error)),
        "nothing was sent, and nothing was changed",
        "name the file that holds the token, or `-` and give it on standard input",
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    // case: O-62
    #[test]
    fn a_token_file_that_is_none_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let refusal = from_file(&path).unwrap_err();
        assert!(refusal.happened.ends_with("pipe is a pipe, not a file"), "{refusal:?}");
        assert!(from_file(folder.path()).unwrap_err().happened.ends_with("a folder, not a file"));
        let path = folder.path().join("large");
        let file = std::fs::File::create(&path).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(from_file(&path).unwrap_err().code, "token_file_unreadable");
        std::fs::write(&path, b"tenure_e1_\xff").unwrap();
        assert_eq!(from_file(&path).unwrap_err().code, "not_a_token");
    }

    // case: O-62
    #[test]
    fn a_token_file_that_others_can_read_is_refused_and_one_of_our_own_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "tenure_e1_abc\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(from_file(&path).unwrap_err().code, "token_file_open");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(from_file(&path).unwrap().as_str(), "tenure_e1_abc\n");
        assert_eq!(from_file(&folder.path().join("none")).unwrap_err().code, "token_file_unreadable");
    }

    #[test]
    fn a_token_that_was_mistyped_is_refused_by_name_before_anything_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let ground = || Ground::new(folder.path().join("root"), true);
        for (text, code) in
            [("hello", "not_a_token"), ("", "not_a_token"), ("tenure_e1_00zz", "token_damaged")]
        {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(enrol(ground(), Some(path.clone()), false).unwrap_err().code, code);
        }
        assert!(!folder.path().join("root").exists());
    }
}
