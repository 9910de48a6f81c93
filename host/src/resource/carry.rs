//! Before a file or directory is changed: whether a flag forbids it, and what of the file that was there goes over to
//! the one that takes its place (O-02, O-03). What cannot go over bars the change, by name.

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
    let around = || match dir.name() {
        "" => "/".to_owned(),
        name => name.to_owned(),
    };
    if let Some(flag) = dir.flag_on(name) {
        return Err(Trouble::flag(flag, path.as_str()));
    }
    match dir.flag().filter(|_| beside) {
        Some(flag) => Err(Trouble::flag(flag, &format!("its directory {}", around()))),
        None => Ok(()),
    }
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
