//! Which paths, units and packages are the host's own. It never manages itself: no declaration may reach them (H-02); it
//! may be raised to another version, which its package does, and is never removed.
//!
//! This is the first of two doors and judges by spelling; the host judges again where links and mounts are seen.

use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::PackageName;

/// Where the host's own things lie, in every spelling a merged `/usr` or `/var/run` gives them.
const PLACES: [&str; 11] = [
    "/etc/tenure",
    "/var/lib/tenure-host",
    "/run/tenure-host",
    "/var/run/tenure-host",
    "/usr/bin/tenure-host",
    "/bin/tenure-host",
    "/usr/lib/tenure-host",
    "/lib/tenure-host",
    "/usr/lib/systemd/system/tenure-host.service",
    "/etc/systemd/system/tenure-host.service",
    "/etc/needrestart/conf.d/tenure-host.conf",
];

/// A unit, its drop-ins (`tenure-host.service.d`) and its wants, wherever systemd looks for them.
const UNIT: &str = "tenure-host.service";
/// Drop-ins that reach our unit with others: of every service, and of every unit whose name begins so.
const WIDE_DROP_INS: [&str; 2] = ["service.d", "tenure-.service.d"];
/// Of these files Podman makes a unit that is called as ours is.
const MADE_INTO_OURS: [&str; 2] = ["tenure-host.container", "tenure-host.kube"];
/// The host's name: its package, and what its unit is called without its kind.
const HOST: &str = "tenure-host";

/// Whether `path` is one of the host's own, or lies below one.
pub(super) fn is_own(path: &DeclaredPath) -> bool {
    let lies_in = |place: &str| path.as_str().contains(place);
    let names_ours = |name: &str| {
        name.starts_with(UNIT)
            || WIDE_DROP_INS.contains(&name) && lies_in("/systemd/")
            || MADE_INTO_OURS.contains(&name.trim_end_matches(".d")) && lies_in("/containers/systemd/")
    };
    PLACES.iter().any(|place| path.is_at_or_below(place)) || path.names().any(names_ours)
}

/// Whether a unit that is called `name` is the host's own: its service, in full or without its kind; what would start
/// it by having its name, such as a timer or socket; and instances of it.
pub(super) fn is_own_unit(name: &str) -> bool {
    name.strip_prefix(HOST).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '@']))
}

/// Whether the package brings the host.
pub(super) fn is_own_package(name: &PackageName) -> bool {
    name.as_str() == HOST
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: H-02
    #[test]
    fn a_drop_in_that_reaches_the_hosts_unit_with_others_is_its_own_too() {
        let own = |path: &str| is_own(&DeclaredPath::new(path).unwrap());
        for ours in [
            "/etc/systemd/system/service.d/x.conf",
            "/run/systemd/system/tenure-.service.d",
            "/etc/tenure/x",
            "/etc/containers/systemd/tenure-host.container",
            "/etc/containers/systemd/tenure-host.kube.d/x.conf",
        ] {
            assert!(own(ours), "{ours}");
        }
        for others in [
            "/srv/service.d/x.conf",
            "/etc/systemd/system/nginx.service.d/x.conf",
            "/etc/tenured",
            "/etc/containers/systemd/web.container",
            "/srv/tenure-host.container",
        ] {
            assert!(!own(others), "{others}");
        }
    }
}
