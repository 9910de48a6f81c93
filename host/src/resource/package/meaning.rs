//! What a package manager means that fails in one of the ways they share. Its own words follow. Pure.

use crate::program::Ran;
use crate::resource::Trouble;

/// The code of what a source lists and does not hand out.
pub(super) const NOT_FETCHED: &str = "package_not_fetched";

/// A database in which nothing is installed is not believed: it was emptied, or is not the one of this machine.
pub(super) fn holds_none(place: &str, look: &str) -> Trouble {
    Trouble::unknown(
        "could_not_look",
        format!(
            "{place} holds no package at all, so nothing is believed or changed by it; run `{look}`, and bring it back from a \
             backup, or name the manager in /etc/tenure/host.toml (`packages = \"apt\"`)"
        ),
    )
}

/// What only looks reads no source, and this one was never read.
pub(super) fn sources_not_read(read: &str, words: &str) -> Trouble {
    Trouble::unknown(
        "sources_not_read",
        format!(
            "a package source of this machine was never read, or what was read of it is gone; it is read when this is \
             applied, and `{read}` on the machine reads it before: {words}"
        ),
    )
}

/// A package proves nothing. `give`: how this machine is given a key.
pub(super) fn unsigned_package(give: &str, words: &str) -> Trouble {
    Trouble::refused(
        "unsigned_package",
        format!(
            "a package is not signed, or not by a key that this machine trusts, so nothing is taken; have it signed, give \
             the machine its key ({give}), or declare another: {words}"
        ),
    )
}

/// A source proves nothing. `give`: how this machine is given a key.
pub(super) fn unsigned_source(give: &str, words: &str) -> Trouble {
    Trouble::refused(
        "unsigned_source",
        format!(
            "a package source of this machine is not signed by a key it trusts, so nothing is taken from it; give the \
             machine its key ({give}), or remove the source: {words}"
        ),
    )
}

/// No source has it.
pub(super) fn unknown_package(words: &str) -> Trouble {
    Trouble::failed(
        "unknown_package",
        format!(
            "the machine's package sources do not have it; declare the source, or another version: {words}"
        ),
    )
}

/// A source lists it and does not hand it out.
pub(super) fn not_fetched(words: &str) -> Trouble {
    Trouble::failed(
        NOT_FETCHED,
        format!(
            "what is needed could not be fetched; look whether the machine reaches its package sources: {words}"
        ),
    )
}

/// Anything else.
pub(super) fn other(program: &str, ran: &Ran, words: &str) -> Trouble {
    let status = ran.status.map_or_else(|| "a signal".to_owned(), |status| format!("status {status}"));
    Trouble::failed(
        "package_manager_failed",
        format!("{program} ended with {status}: {words}; run it by hand and look at what it says"),
    )
}
