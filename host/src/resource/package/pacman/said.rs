//! What pacman's words mean: what it would do, why it did not, and what went wrong beside what it did. Pure.

use tenure_protocol::text::shown;

use super::super::Begun;
use super::super::apt::{LOCK_HELD, UNMET};
use super::super::meaning;
use crate::program::Ran;
use crate::resource::Trouble;
use crate::resource::remark::{self, Kind, Remarks};

/// One package that a transaction would touch.
pub(super) struct Would<'t> {
    pub(super) source: &'t str,
    pub(super) name: &'t str,
    pub(super) version: &'t str,
}

/// What it would do: `would|SOURCE|NAME|VERSION`.
pub(super) fn would(text: &str) -> impl Iterator<Item = Would<'_>> {
    text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('|').collect();
        let ["would", source, name, version] = fields[..] else { return None };
        Some(Would { source, name, version })
    })
}

/// The versions that its sources have of this package.
pub(super) fn offered(name: &str, text: &str) -> Vec<String> {
    let (mut versions, mut is_it) = (Vec::new(), false);
    for line in text.lines() {
        match line.split_once(':').map(|(field, value)| (field.trim(), value.trim())) {
            Some(("Name", value)) => is_it = value == name,
            Some(("Version", value)) if is_it => versions.push(value.to_owned()),
            Some(_) | None => {}
        }
    }
    versions
}

/// What its words mean, which failed.
pub(super) fn failed(program: &str, ran: &Ran) -> Trouble {
    let text = format!("{}\n{}", ran.out, ran.err);
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let words = words(&text, ran);
    if says(&["unable to lock database"]) {
        let reason = format!("the package manager is in use: {words}; it is tried again by the next pass");
        return Trouble::outstanding(LOCK_HELD, reason);
    }
    if let Some(others) = needs_others(&text) {
        return Trouble::refused("transaction_refused", format!("not done: {others}"));
    }
    if says(&UNPROVEN) {
        return meaning::unsigned_source(GIVE, &words);
    }
    if says(&UNSIGNED) {
        return meaning::unsigned_package(GIVE, &words);
    }
    if says(&["target not found"]) {
        return meaning::unknown_package(&words);
    }
    if says(&["unable to satisfy dependency"]) {
        return Trouble::failed(
            UNMET,
            format!(
                "what is needed cannot be had together: {words}; declare another version, or another package"
            ),
        );
    }
    if says(&NOT_HAD) { meaning::not_fetched(&words) } else { meaning::other(program, ran, &words) }
}

/// How the machine is given a key.
const GIVE: &str = "`pacman-key --add FILE`, then `pacman-key --lsign-key ID`";
/// The signature of a package, or of a list of them, is a file beside it.
const UNPROVEN: [&str; 2] = [".db.sig' from", "database (PGP signature)"];
const UNSIGNED: [&str; 6] = [
    ".sig' from",
    "missing required signature",
    "(PGP signature)",
    "is unknown trust",
    "is marginal trust",
    "could not be looked up remotely",
];
const NOT_HAD: [&str; 2] = ["failed to retrieve", "failed retrieving file"];

/// It asks whether another may go, and answers no; or another needs what would change (H-25).
fn needs_others(text: &str) -> Option<String> {
    let conflict = text.lines().find_map(|line| {
        let (pair, _) = line.trim().trim_start_matches([':', ' ']).split_once(" are in conflict")?;
        let (new, old) = pair.split_once(" and ")?;
        let (new, old) = (shown(new, 100), shown(old, 100));
        Some(format!(
            "{new} conflicts with {old}, which would also be removed; declare {old} absent, or declare another package"
        ))
    });
    let breaks = || {
        let line = text.lines().find(|line| line.contains(" breaks dependency "))?;
        let (what, by) = line.trim().trim_start_matches([':', ' ']).split_once(" required by ")?;
        let (what, by) = (shown(what, 150), shown(by, 100));
        Some(format!(
            "{what}, which {by} needs, so {by} would also be removed or changed; declare {by} too, or leave it as it is"
        ))
    };
    conflict.or_else(breaks)
}

/// The lines in which it says what went wrong.
fn words(text: &str, ran: &Ran) -> String {
    let telling = |line: &&str| {
        line.starts_with("error:") || line.starts_with(":: unable") || line.contains(" exists in filesystem")
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(telling).take(4).collect();
    if lines.is_empty() { ran.last_words() } else { shown(&lines.join(" / "), 300) }
}

/// What is to be told of what it did. A script that fails does not stop it.
pub(super) fn remarks(ran: &Ran, touched: &Begun) -> Remarks {
    let mut remarks = Remarks::new();
    let (mut current, mut output): (Option<&str>, Vec<&str>) = (None, Vec::new());
    for line in ran.out.lines().map(str::trim) {
        if let Some((name, _)) = step(line).and_then(|name| touched.get_key_value(name)) {
            (current, output) = (Some(name.as_str()), Vec::new());
            continue;
        }
        let Some(name) = current else { continue };
        if line == "error: command failed to execute correctly" {
            let (again, spoken) = (again(name), remark::spoken(&output));
            let reason = format!(
                "a script of it failed; {again} runs it again, /var/log/pacman.log says more{spoken}"
            );
            remark::add(&mut remarks, name, Kind::ScriptFailed, &reason);
        } else if let Some(reason) = remark::kept(line, " installed as ") {
            remark::add(&mut remarks, name, Kind::ConfigurationKept, &reason);
        } else if !line.is_empty() {
            output.push(line);
        }
    }
    remarks
}

/// Brings it anew, and runs its scripts again.
pub(super) fn again(name: &str) -> String {
    format!("`pacman -S {name}`")
}

/// `installing hello...`
fn step(line: &str) -> Option<&str> {
    let (verb, name) = line.strip_suffix("...")?.split_once(' ')?;
    matches!(verb, "installing" | "upgrading" | "downgrading" | "reinstalling" | "removing").then_some(name)
}
