//! `tenure render DIR --node N --out B`: one node of a fleet folder as a bundle, which a host plans and applies by
//! hand: `declaration.json` and `blobs/sha256/…`. Nothing is declared by it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde_json::json;
use tenure_protocol::declaration::Declaration;
use tenure_protocol::id::Digest;
use tenure_protocol::operator::Render;
use tenure_protocol::refusal::Refusal;

use crate::caller::Caller;
use crate::command;
use crate::content;
use crate::declare::folder;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;
use crate::socket;
use crate::words::{counted, quoted};

pub(crate) async fn run(
    order: &command::Render,
    named: Option<&Path>,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let gathered = folder::gather(&order.dir).map_err(|error| Trouble::refused(&error))?;
    if order.out.symlink_metadata().is_ok() {
        return Err(exists(&order.out));
    }
    let control = socket::control_plane(named).await?;
    render(order, &gathered, &control, screen).await
}

async fn render(
    order: &command::Render,
    gathered: &folder::Gathered,
    control: &Caller,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let bar = screen.bytes_bar("uploading", gathered.bytes());
    content::upload(control, &gathered.contents, &bar).await?;
    bar.finish_and_clear();
    let rendered = control.ask(&Render { folder: gathered.listing, node: order.node.clone() }).await?;

    let bar = screen.bytes_bar("fetching", rendered.declaration.size);
    let document = content::fetch(control, &[rendered.declaration], &bar).await?;
    let bytes = document.into_values().next().unwrap_or_default();
    let declaration = Declaration::parse(&bytes).map_err(|error| {
        Trouble::ours("the declaration that the control plane rendered cannot be read", &error)
    })?;
    let blobs = content::fetch(control, &declaration.contents(), &bar).await?;
    bar.finish_and_clear();
    write(&order.out, &bytes, &blobs)?;

    let resources = declaration.entries.len().try_into().unwrap_or(u64::MAX);
    let out = order.out.display().to_string();
    if screen.is_json() {
        screen.print_json(&json!({
            "node": order.node,
            "bundle": out,
            "declaration": rendered.declaration,
            "resources": resources,
            "blobs": blobs.len(),
        }))?;
    } else {
        screen.print(&format!("{out}: {} of {}\n", counted(resources, "resource"), order.node))?;
        screen.say(&format!(
            "nothing was declared; on a machine that is not enrolled:  tenure-host plan {}",
            quoted(&out)
        ));
    }
    Ok(Exit::Done)
}

/// The declaration is written last: a bundle that has one is whole.
fn write(out: &Path, declaration: &[u8], blobs: &BTreeMap<Digest, Vec<u8>>) -> Result<(), Trouble> {
    let written = || {
        let folder = out.join("blobs/sha256");
        let mut builder = DirBuilder::new();
        builder.mode(0o700).create(out)?;
        builder.recursive(true).create(&folder)?;
        for (digest, bytes) in blobs {
            write_new(&folder.join(digest.to_string()), bytes)?;
        }
        write_new(&out.join("declaration.json"), declaration)
    };
    written().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(out),
        _ => Trouble::failed(Refusal::new(
            "cannot_write",
            format!("the bundle {} could not be written: {error}", out.display()),
            "what is there of it is not whole: it has no declaration.json",
            "make room or name another place, remove what is there, and render again",
        )),
    })
}

/// Bundles hold what may be secret: nobody else reads them.
fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn exists(out: &Path) -> Trouble {
    Refusal::new(
        "file_exists",
        format!("{} is there already", out.display()),
        "a bundle is never written over something or into it; nothing was rendered",
        "name a folder that is not there yet, or remove this one",
    )
    .into()
}

#[cfg(test)]
mod tests;
