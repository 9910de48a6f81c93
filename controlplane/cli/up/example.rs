//! The example fleet that `up` puts beside a sandbox for trying things out. What is there is the operator's and is
//! never written again.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use tenure_protocol::refusal::Refusal;

use crate::ending::Trouble;

/// Every file of `packaging/example`, by its path there.
const FILES: &[(&str, &[u8])] = &[
    ("fleet.toml", include_bytes!("../../../packaging/example/fleet.toml")),
    ("modules/base/module.toml", include_bytes!("../../../packaging/example/modules/base/module.toml")),
    ("modules/web/module.toml", include_bytes!("../../../packaging/example/modules/web/module.toml")),
    (
        "modules/web/files/index.html",
        include_bytes!("../../../packaging/example/modules/web/files/index.html"),
    ),
    (
        "modules/web/files/robots.txt",
        include_bytes!("../../../packaging/example/modules/web/files/robots.txt"),
    ),
    ("modules/web/files/site.conf", include_bytes!("../../../packaging/example/modules/web/files/site.conf")),
];

pub(crate) fn write(folder: &Path) -> Result<(), Trouble> {
    let written = match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => Err(error),
        Ok(()) => FILES.iter().try_for_each(|(path, bytes)| {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)
        }),
    };
    written.map_err(|error| {
        Trouble::failed(Refusal::new(
            "cannot_write",
            format!("the example in {} cannot be written: {error}", folder.display()),
            "the sandbox cannot show what a fleet folder looks like; it is stopped again",
            "make room there, remove what is there of it, and run this again",
        ))
    })
}

#[cfg(test)]
mod tests;
