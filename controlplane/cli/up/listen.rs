//! Where the control plane of a sandbox listens: as asked, else as the last time, else at the usual place. A second
//! run continues where the first one was reached.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7443);

pub(crate) fn choose(asked: Option<SocketAddr>, remembered: &Path) -> SocketAddr {
    let last = || std::fs::read_to_string(remembered).ok()?.trim().parse().ok();
    asked.or_else(last).unwrap_or(USUAL)
}

/// For the next run. Where it cannot be written, that one has to be told again.
pub(crate) fn remember(listen: SocketAddr, path: &Path) {
    let _ = std::fs::write(path, format!("{listen}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_listens_where_the_first_one_did_unless_it_is_told_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("listen");
        let asked: SocketAddr = "127.0.0.1:9".parse().unwrap();
        assert_eq!(choose(None, &path), USUAL);
        remember(asked, &path);
        assert_eq!(choose(None, &path), asked);
        assert_eq!(choose(Some(USUAL), &path), USUAL);
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(choose(None, &path), USUAL);
    }
}
