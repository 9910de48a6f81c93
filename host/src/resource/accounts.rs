//! Owners and groups by name, from the machine's own account files below the root. No name service is asked: it could
//! hang, and what it says of another root would be wrong.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::resource::Principal;

use crate::walk::read::{Found, read_all};
use crate::walk::{WalkError, Walker};

/// Names and numbers, as they stood when the pass began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    users: HashMap<Box<str>, u32>,
    groups: HashMap<Box<str>, u32>,
    /// Which of the files is there and could not be read.
    #[serde(skip)]
    unread: Vec<&'static str>,
}

/// Far more than any machine's own accounts.
const MOST_BYTES: usize = 16 * 1024 * 1024;

impl Accounts {
    /// Reads `/etc/passwd` and `/etc/group`; where one cannot be read, its names are not known, and that is said.
    pub fn read(walker: &Walker<'_>) -> Self {
        let mut unread = Vec::new();
        let mut names = |file| {
            parse(&text(walker, file).unwrap_or_else(|| {
                unread.push(file);
                String::new()
            }))
        };
        let (users, groups) = (names("/etc/passwd"), names("/etc/group"));
        Self { users, groups, unread }
    }

    /// Whether this file is there and could not be read: then a name it does not have is not known to be missing (I-05).
    pub fn is_unread(&self, file: &str) -> bool {
        self.unread.contains(&file)
    }

    /// The number of this owner, if it is known.
    pub fn user(&self, user: &Principal) -> Option<u32> {
        number(&self.users, user)
    }

    /// The number of this group, if it is known.
    pub fn group(&self, group: &Principal) -> Option<u32> {
        number(&self.groups, group)
    }
}

/// Root is nought on every machine, also on one without account files.
fn number(names: &HashMap<Box<str>, u32>, who: &Principal) -> Option<u32> {
    match who {
        Principal::Number(number) => Some(*number),
        Principal::Name(name) => {
            names.get(name).copied().or_else(|| (&**name == "root" && names.is_empty()).then_some(0))
        }
    }
}

/// Empty where there is no such file; none where it cannot be read.
fn text(walker: &Walker<'_>, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    DeclaredPath::new(path).ok().and_then(|path| {
        let (dir, name) = match walker.parent(&path) {
            Err(WalkError::Missing { .. }) => return Some(()),
            reached => reached.ok()?,
        };
        if dir.look(name) == Ok(Found::Nothing) {
            return Some(());
        }
        let (mut file, _) = dir.open_file(name).ok()?;
        read_all(&mut file, &mut |page| {
            if bytes.len() + page.len() > MOST_BYTES {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            bytes.extend_from_slice(page);
            Ok(())
        })
        .ok()
    })?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `name:password:number:…`; the first of a name counts, as it does for the system.
fn parse(text: &str) -> HashMap<Box<str>, u32> {
    let mut names = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(number)) = (fields.next(), fields.nth(1).and_then(|n| n.parse().ok()))
            && !name.is_empty()
        {
            names.entry(name.into()).or_insert(number);
        }
    }
    names
}
