//! What can be read of this machine without changing it: profile, inventory, boot, disk, facts. What cannot be read is
//! left empty or said to be unmeasurable, never guessed.

use std::path::Path;

use nix::sys::statvfs::statvfs;
use tenure_actors::clock::Moment;
use tenure_protocol::id::{BootId, Digest, Millis};
use tenure_protocol::profile::{Disk, Facts, Inventory, Profile};
use tenure_protocol::resource::ResourceKind;
use tenure_protocol::text::shown;
use tenure_protocol::version::SOFTWARE;

/// What the machine is. `root` is where its files are looked for; kernel, processors and memory are always this one's.
pub fn profile(root: &Path, sandbox: bool) -> Profile {
    let kernel = |name: &str| {
        let text = read(&Path::new("/proc/sys/kernel").join(name));
        text.map(|text| shown(text.trim(), 200)).unwrap_or_default()
    };
    // A sandbox is a folder on somebody's machine: what it runs on is the machine's own.
    let root = if sandbox { Path::new("/") } else { root };
    Profile {
        hostname: kernel("hostname"),
        os: os_release(
            &read(&root.join("etc/os-release"))
                .or_else(|| read(&root.join("usr/lib/os-release")))
                .unwrap_or_default(),
        ),
        kernel: kernel("osrelease"),
        architecture: std::env::consts::ARCH.to_owned(),
        cpus: std::thread::available_parallelism()
            .ok()
            .and_then(|n| u32::try_from(n.get()).ok())
            .unwrap_or(0),
        memory: read(Path::new("/proc/meminfo")).map(|text| memory(&text)).unwrap_or(0),
        machine: read(&root.join("etc/machine-id"))
            .map(|id| Digest::of(format!("tenure/machine-id/v1\0{}", id.trim()).as_bytes()).to_string())
            .unwrap_or_default(),
        sandbox,
    }
}

/// What was found that somebody else made, and what can be done here (N-19): a sandbox has no packages and units. This
/// version looks at listening sockets of TCP.
pub fn inventory(sandbox: bool) -> Inventory {
    let performed: &[ResourceKind] =
        if sandbox { &[ResourceKind::Directory, ResourceKind::File] } else { &ResourceKind::ALL };
    let mut inventory = Inventory {
        kinds: performed.iter().map(|kind| kind.as_str().to_owned()).collect(),
        ..Inventory::default()
    };
    for (table, family) in [("/proc/net/tcp", Family::V4), ("/proc/net/tcp6", Family::V6)] {
        match std::fs::read_to_string(table) {
            Ok(text) => inventory.listeners.extend(listeners(&text, family)),
            // A kernel without IPv6 has no such table: nobody listens there.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && family == Family::V6 => {}
            Err(error) => inventory.could_not_look.push(format!("{table}: {error}")),
        }
    }
    inventory.listeners.sort();
    inventory.listeners.dedup();
    if inventory.listeners.len() > MOST_LISTENERS {
        inventory.could_not_look.push(format!("more than {MOST_LISTENERS} listening sockets"));
        inventory.listeners.truncate(MOST_LISTENERS);
    }
    inventory
}

/// Which boot this is; made of zeros where the kernel does not tell.
pub fn boot_id() -> BootId {
    read(Path::new("/proc/sys/kernel/random/boot_id"))
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(BootId::from_bytes([0; 16]))
}

/// What is said with each beat. `state` is the host's state directory, whose disk counts.
pub fn facts(state: &Path, now: Moment) -> Facts {
    Facts { observed_at: Millis(now.millis()), running_version: SOFTWARE.to_owned(), disk: disk(state) }
}

const MOST_LISTENERS: usize = 200;

fn disk(path: &Path) -> Disk {
    match statvfs(path) {
        Ok(stat) if stat.blocks() > 0 => Disk::Measured {
            free: stat.blocks_available().saturating_mul(stat.fragment_size()),
            size: stat.blocks().saturating_mul(stat.fragment_size()),
        },
        // A file system that counts no blocks tells nothing of its room.
        Ok(_) | Err(_) => Disk::Unmeasurable,
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn os_release(text: &str) -> String {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|v| v.trim_matches(['"', '\'']))
    };
    let words: Vec<&str> = [value("ID"), value("VERSION_ID")].into_iter().flatten().collect();
    shown(&words.join(" "), 200)
}

fn memory(text: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
        })
        .map_or(0, |kib| kib.saturating_mul(1024))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

/// The listening sockets of one table of the kernel, as in `tcp 0.0.0.0:5432`.
fn listeners(table: &str, family: Family) -> Vec<String> {
    table.lines().skip(1).filter_map(|line| listener(line, family)).collect()
}

fn listener(line: &str, family: Family) -> Option<String> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    if state != LISTEN {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // The kernel prints each 32-bit word as the machine reads it from network order.
    let words = (0..address.len() / 8)
        .map(|word| u32::from_str_radix(address.get(word * 8..word * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<Vec<[u8; 4]>>>()?;
    let address = match family {
        Family::V4 => std::net::IpAddr::from(*words.first()?),
        Family::V6 => std::net::IpAddr::from(<[u8; 16]>::try_from(words.concat()).ok()?),
    };
    Some(format!("tcp {}", std::net::SocketAddr::new(address, port)))
}

#[cfg(test)]
mod tests;
