//! Before a file or directory is changed: whether a flag forbids it, whether somebody would get what is not his, and what
//! of the file that was there goes over to the one that takes its place (O-02, O-03). What cannot go over bars the change,
//! by name.

use std::fs::File;
use std::io;

use tenure_protocol::path::DeclaredPath;

use super::trouble::{changing, looking};
use super::{Site, Trouble};
use crate::walk::Dir;
use crate::walk::carry::{Attributes, has_access_list};
use crate::walk::change::{ChangeError, Owner};
use crate::walk::read::{ReadError, Stat};

/// More names are counted.
const MOST_NAMED: usize = 8;

/// Whether no flag forbids to change what lies at `name`; `beside`: something is to be made or removed in its directory.
pub(super) fn is_free(dir: &Dir, name: &str, path: &DeclaredPath, beside: bool) -> Result<(), Trouble> {
    if let Some(flag) = dir.flag_on(name) {
        return Err(Trouble::flag(flag, path.as_str()));
    }
    if beside { has_room(dir) } else { Ok(()) }
}

/// Whether no flag forbids to make or remove something in this directory.
pub(super) fn has_room(dir: &Dir) -> Result<(), Trouble> {
    let Some(flag) = dir.flag() else { return Ok(()) };
    let name = if dir.name().is_empty() { "/" } else { dir.name() };
    Err(Trouble::flag(flag, &format!("its directory {name}")))
}

/// What the file that was seen at `name` has besides. `owner`: whose the new one will be.
pub(super) fn carried(
    site: &Site<'_>,
    dir: &Dir,
    name: &str,
    path: &DeclaredPath,
    seen: &Stat,
    owner: Option<Owner>,
) -> Result<Attributes, Trouble> {
    let file = opened(dir, name, path, seen)?;
    let attributes = Attributes::read(&file).map_err(|error| unread(path, error))?;
    if let Some(name) = attributes.of_the_content() {
        return Err(Trouble::cannot_carry(path, &name, "it belongs to the very content that was there"));
    }
    // Whoever could put the file there, or own it, could have given himself a part in what is written now.
    let is_theirs = !site.walker.is_trusted_owner(seen.uid) && owner.is_none_or(|(uid, _)| uid != seen.uid);
    match attributes.giving().filter(|_| is_theirs || !dir.is_trusted()) {
        Some(name) => Err(Trouble::cannot_carry(path, &name, ANYBODYS)),
        None => Ok(attributes),
    }
}

/// Whether the mode of the file that was seen at `name` may be set where it is: an access list lets in whom it names, and
/// where not root alone can put things, anybody could have put a file with one there.
pub(super) fn may_be_set(dir: &Dir, name: &str, path: &DeclaredPath, seen: &Stat) -> Result<(), Trouble> {
    if dir.is_trusted() {
        return Ok(());
    }
    match has_access_list(&opened(dir, name, path, seen)?).map_err(|error| looking(path, error))? {
        Some(name) => Err(Trouble::cannot_carry(path, &name, ANYBODYS)),
        None => Ok(()),
    }
}

/// Whether what was seen there, whose content nobody declared, may be given the standing that is declared of it. Where
/// somebody else can write the directory, he can move there what is not his: then it is opened to nobody who could not
/// reach what is in it before.
pub(super) fn is_not_given_away(
    site: &Site<'_>,
    dir: &Dir,
    path: &DeclaredPath,
    seen: &Stat,
    (owner, mode): (Option<Owner>, u32),
) -> Result<(), Trouble> {
    let Some((uid, gid)) = owner.filter(|_| !dir.is_trusted()) else { return Ok(()) };
    let is_roots = |uid| site.walker.is_trusted_owner(uid);
    let to_another = uid != seen.uid && !is_roots(uid);
    let opened = is_opened(seen, gid, mode) && (uid != seen.uid || is_roots(seen.uid));
    if !to_another && !opened {
        return Ok(());
    }
    let who = site.walker.who_else(dir).unwrap_or_else(|| "not root alone can put things there".to_owned());
    Err(Trouble::not_given_away(path, seen, &who, ((uid, gid), mode)))
}

/// Whether the group or all others would be able to do more than before.
fn is_opened(seen: &Stat, gid: u32, mode: u32) -> bool {
    let to_group = if gid == seen.gid { seen.mode >> 3 } else { seen.mode };
    (mode >> 3) & 0o7 & !to_group != 0 || mode & 0o7 & !seen.mode != 0
}

/// Whether all of it can be given to the file that takes the place.
pub(super) fn can_go_over(path: &DeclaredPath, attributes: &Attributes) -> Result<(), Trouble> {
    attributes.of_the_file_system().map_or(Ok(()), |name| Err(Trouble::of_the_file_system(path, &name)))
}

fn opened(dir: &Dir, name: &str, path: &DeclaredPath, seen: &Stat) -> Result<File, Trouble> {
    let (file, stat) = dir.open_file(name).map_err(|error| match error {
        ReadError::Exchanged => changing(path, dir, name, ChangeError::Meanwhile),
        ReadError::Io(error) => looking(path, error),
    })?;
    if stat.is_untouched(seen) { Ok(file) } else { Err(changing(path, dir, name, ChangeError::Meanwhile)) }
}

/// Whoever owns a file may have given it any number of attributes.
fn unread(path: &DeclaredPath, error: io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::FileTooLarge | io::ErrorKind::ArgumentListTooLong => {
            Trouble::too_many_attributes(path)
        }
        _ => looking(path, error),
    }
}

const ANYBODYS: &str = "not root alone could have put a file with it there";

/// In words; none where nothing was carried.
pub(super) fn words(names: &[String]) -> Option<String> {
    let (named, more) = names.split_at_checked(MOST_NAMED).unwrap_or((names, &[]));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!named.is_empty()).then(|| format!("kept of the file that was there: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    // rule: S-12
    #[test]
    fn the_group_and_all_others_count_for_themselves_and_a_new_group_had_what_all_others_had() {
        let inode = crate::ground::own::Inode { dev: 1, ino: 1 };
        let seen =
            |mode| Stat { inode, mode, uid: 0, gid: 5, size: 0, links: 1, changed: (0, 0), written: (0, 0) };
        for (was, gid, mode) in [(0o600, 5, 0o640), (0o600, 5, 0o604), (0o640, 6, 0o640), (0o754, 6, 0o750)] {
            assert!(is_opened(&seen(was), gid, mode), "{was:o} {gid} {mode:o}");
        }
        for (was, gid, mode) in [(0o600, 6, 0o600), (0o755, 6, 0o755), (0o644, 5, 0o4640), (0o755, 5, 0o700)]
        {
            assert!(!is_opened(&seen(was), gid, mode), "{was:o} {gid} {mode:o}");
        }
    }

    // case: O-03
    #[test]
    fn more_attributes_than_are_carried_are_named_as_such_and_no_other_failure_is() {
        let path = DeclaredPath::new("/srv/a").unwrap();
        for error in [io::ErrorKind::FileTooLarge.into(), Errno::TOOBIG.into()] {
            let trouble = unread(&path, error);
            assert_eq!(trouble.code, "cannot_carry");
            assert!(
                trouble.reason.contains("1024 KiB") && trouble.reason.contains("getfattr -d -m - /srv/a")
            );
        }
        assert_eq!(unread(&path, Errno::IO.into()).code, "could_not_look");
    }
}
