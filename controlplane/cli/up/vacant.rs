//! Whether the host's socket can lie where it belongs, asked before the host is started: a host without one goes on
//! holding its machine and waits for the place, and `up` could not speak to it.

use std::path::Path;

use tenure_actors::socket::{self, InTheWay};
use tenure_protocol::refusal::{Refusal, chain};

pub(crate) fn check(path: &Path) -> Result<(), Refusal> {
    let Err(why) = socket::vacant(path, path) else { return Ok(()) };
    let (code, remedy) = match &why {
        InTheWay::InUse { pid: Some(pid), .. } => (
            "socket_in_use",
            format!("see what process {pid} is (`ps {pid}`), and stop it if it should not be there"),
        ),
        InTheWay::InUse { pid: None, .. } => (
            "socket_in_use",
            format!("see who has it (`fuser {}`), and stop that if it should not be there", path.display()),
        ),
        InTheWay::NotASocket { .. } => {
            ("socket_in_the_way", format!("see what it is (`ls -l {}`), and move it away", path.display()))
        }
        InTheWay::Io { .. } => {
            let folder = path.parent().unwrap_or(path).display();
            ("socket_not_made", format!("look at the folder's owner and mode (`ls -ld {folder}`)"))
        }
    };
    Err(Refusal::new(
        code,
        chain(&why),
        "the host could not be spoken to; everything that was started is stopped again",
        remedy,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_place_of_the_hosts_socket_is_named_and_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        assert_eq!(check(&path), Ok(()));
        std::fs::write(&path, "theirs").unwrap();
        let refusal = check(&path).unwrap_err();
        assert!(refusal.is("socket_in_the_way") && refusal.remedy.contains("ls -l"), "{refusal:?}");
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }
}
