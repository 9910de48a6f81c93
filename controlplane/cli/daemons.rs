//! The one place where both sides meet: this binary is also either daemon, when it is started under that daemon's
//! name. That is how `up` starts both, and what process lists then show.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

/// The two daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Daemon {
    Control,
    Host,
}

impl Daemon {
    /// The daemon a process of this name is to be; none: it is the command line.
    pub(crate) fn named(name: &OsStr) -> Option<Self> {
        let name = Path::new(name).file_name()?;
        [Self::Control, Self::Host].into_iter().find(|daemon| name == daemon.name())
    }

    /// The name to start it under.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Control => "tenure-control",
            Self::Host => "tenure-host",
        }
    }

    /// Is that daemon until it ends; it reads the arguments of the process itself.
    pub(crate) fn run(self) -> ExitCode {
        match self {
            Self::Control => tenure_controlplane::cli::main(),
            Self::Host => tenure_host::cli::main(),
        }
    }
}

/// Runs the control plane of the tree at `root`, told to its machine as it listens; none: as its configuration says.
pub(crate) fn control_arguments(root: &Path, listen: Option<SocketAddr>) -> Vec<OsString> {
    let mut arguments = words(&["run", "--die-with-parent", "--root"]);
    arguments.push(root.into());
    if let Some(listen) = listen {
        let (listen, reached) = (listen.to_string(), reached(listen).to_string());
        arguments.extend(words(&["--listen", &listen, "--advertise", &reached]));
    }
    arguments
}

/// Runs the host of the tree at `root`; in a sandbox, of nothing outside it.
pub(crate) fn host_arguments(root: &Path, sandbox: bool) -> Vec<OsString> {
    let mut arguments = words(&["run", "--die-with-parent", "--root"]);
    arguments.push(root.into());
    if sandbox {
        arguments.push("--sandbox".into());
    }
    arguments
}

/// Where this machine reaches whoever listens there: every address is none to dial.
fn reached(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_it_is_started_under_says_which_program_it_is() {
        let named = |name: &str| Daemon::named(OsStr::new(name));
        assert_eq!(named("tenure-control"), Some(Daemon::Control));
        assert_eq!(named("/usr/bin/tenure-host"), Some(Daemon::Host));
        assert_eq!(named("/usr/bin/tenure"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn a_control_plane_that_listens_everywhere_is_dialled_on_this_machine() {
        let advertised = |listen: &str| {
            let arguments = control_arguments(Path::new("/r"), Some(listen.parse().unwrap()));
            arguments.last().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(advertised("127.0.0.1:7443"), "127.0.0.1:7443");
        assert_eq!(advertised("0.0.0.0:7443"), "127.0.0.1:7443");
        assert_eq!(advertised("[::]:7443"), "[::1]:7443");
        assert_eq!(
            control_arguments(Path::new("/"), None),
            words(&["run", "--die-with-parent", "--root", "/"])
        );
    }
}
