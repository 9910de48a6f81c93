//! Who listens on a port of this machine, from what the kernel shows: the inode of the socket, and the process that
//! holds it. Only to name somebody in a refusal; what cannot be seen is not named.

use std::fmt;
use std::path::Path;

/// A process that holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// What it runs.
    pub program: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.program, self.pid)
    }
}

/// Whoever listens on this TCP port, if we may see it.
pub fn of(port: u16) -> Option<Holder> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .find_map(|table| inode_of(&table, port))?;
    process_of(&inode)
}

/// The state of a socket that listens.
const LISTEN: &str = "0A";

fn inode_of(table: &str, port: u16) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        let (_, hex) = local.rsplit_once(':')?;
        let listens = *state == LISTEN && u16::from_str_radix(hex, 16) == Ok(port);
        listens.then(|| (*inode).to_owned())
    })
}

fn process_of(inode: &str) -> Option<Holder> {
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut descriptors = std::fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let holds =
            descriptors.any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new(&wanted)));
        holds.then(|| Holder { pid, program: program(&process.path()) })
    })
}

fn program(process: &Path) -> String {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    tenure_protocol::text::shown(name.trim(), 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inode_of_a_listening_port_is_found_and_of_a_connected_one_not() {
        let table = "  sl  local_address rem_address st tx rx tr tm retrnsmt uid timeout inode\n\
            0: 0100007F:1D13 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0\n\
            1: 0100007F:1D14 00000000:0000 01 00000000:00000000 00:00000000 00000000 0 0 4712 1 0\n";
        assert_eq!(inode_of(table, 7443).as_deref(), Some("4711"));
        assert_eq!(inode_of(table, 7444), None);
    }

    #[test]
    fn a_port_this_very_process_holds_is_named_with_its_pid() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = of(socket.local_addr().unwrap().port()).unwrap();
        assert_eq!(holder.pid, std::process::id());
    }
}
