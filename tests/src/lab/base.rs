//! The systems machines are made of: built once by mmdebstrap into the cache, never written again. Every machine is an
//! overlay on one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::cache;
use super::tool::Tool;

/// A system that a machine can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// Debian 12, systemd 252.
    Bookworm,
    /// Debian 13, systemd 257.
    Trixie,
    /// Debian 12 with dnf and pacman beside apt, each with a repository of tiny packages.
    Managers,
    /// Debian 12 with what else keeps files as they are wanted, and nothing of it running.
    Peers,
}

impl Base {
    fn suite(self) -> &'static str {
        match self {
            Self::Bookworm | Self::Managers | Self::Peers => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    fn packages(self) -> String {
        match self {
            Self::Bookworm | Self::Trixie => PACKAGES.to_owned(),
            Self::Managers => format!("{PACKAGES},{MANAGERS}"),
            Self::Peers => format!("{PACKAGES},{PEERS}"),
        }
    }

    /// What is run inside it once its packages are there.
    fn script(self) -> &'static str {
        match self {
            Self::Bookworm | Self::Trixie => "",
            Self::Managers => include_str!("managers.sh"),
            Self::Peers => ASLEEP,
        }
    }

    /// The root folder of this base; built now where the cache has none for these packages. Two runs that need it at
    /// once build it once.
    pub(super) fn root(self) -> PathBuf {
        let script = self.script();
        let recipe = format!("{}\n{}\n{}\n{HOOK}{script}", self.suite(), self.packages(), mirror());
        let digest = Sha256::digest(recipe.as_bytes());
        let key: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{}-{key}", self.suite());
        let root = cache::subfolder("bases").join(&name);
        let _lock = cache::lock(&name);
        if !root.exists() {
            self.build(&root);
        }
        root
    }

    fn build(self, root: &Path) {
        let building = root.with_extension("building");
        if building.exists() {
            fs::remove_dir_all(&building).expect("a base whose building was interrupted");
        }
        eprintln!(
            "lab: building the {} base into {} (once, about half a minute)",
            self.suite(),
            root.display()
        );
        let script = root.with_extension("script");
        fs::write(&script, self.script()).expect("a file beside the base");
        Tool::new(&[
            "nice",
            "mmdebstrap",
            "--variant=minbase",
            &format!("--include={}", self.packages()),
            &format!("--customize-hook=upload {} {INSIDE}", script.display()),
            &format!("--customize-hook=chroot \"$1\" bash {INSIDE} && rm \"$1{INSIDE}\""),
            &format!("--customize-hook={HOOK}"),
            self.suite(),
            &building.display().to_string(),
            &mirror(),
        ])
        .deadline(Duration::from_secs(900))
        .must();
        fs::rename(&building, root).expect("the base gets its name when it is whole");
    }
}

/// Where Debian's packages come from; `TENURE_LAB_MIRROR` names another place.
fn mirror() -> String {
    std::env::var("TENURE_LAB_MIRROR").unwrap_or_else(|_| "http://deb.debian.org/debian".to_owned())
}

const PACKAGES: &str = "systemd,systemd-sysv,dbus,iproute2,iputils-ping,nftables,iptables,openssh-server,procps,ca-certificates,curl";

/// dnf and pacman, and what makes packages and repositories for them.
const MANAGERS: &str =
    "dnf,dnf-plugins-core,rpm,createrepo-c,pacman-package-manager,makepkg,libarchive-tools,fakeroot";

/// What the benchmarks run beside the host.
const PEERS: &str = "rsync,cfengine3,ansible-core,puppet-agent,nats-server";

/// The daemons among them would work beside what is measured.
const ASLEEP: &str =
    "systemctl --quiet mask cfengine3 cf-execd cf-monitord cf-serverd puppet nats-server rsync";

const INSIDE: &str = "/root/packages.sh";

/// What every machine needs: networkd, a journal that outlives a boot, nothing that works on packages by itself, and no
/// identity, source or resolver of the build machine. There are no kernel modules to load in a container.
const HOOK: &str = r#"
systemctl --root="$1" --quiet enable systemd-networkd
systemctl --root="$1" --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-modules-load.service
mkdir -p "$1/var/log/journal"
rm -rf "$1"/etc/ssh/ssh_host_* "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/run/*
: >"$1/etc/resolv.conf"
: >"$1/etc/machine-id"
"#;
