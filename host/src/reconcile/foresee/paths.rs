//! Files and directories that would be changed: how, and what would stand in the way.

use tenure_protocol::foresight::What;
use tenure_protocol::resource::{DirectorySpec, Resource, Spec};

use super::{Foresight, Said, diff};
use crate::reconcile::plan::Change;
use crate::resource::{Seen, Trouble, counted};

impl Foresight<'_> {
    pub(super) fn path(&mut self, resource: &Resource, change: &Change, seen: &Seen) -> Said {
        if let Some(trouble) = self.obstacle(resource, seen) {
            return self.later(trouble);
        }
        let mut detail = change.differs.clone();
        detail.extend(change.drift.as_ref().map(|drift| format!("since we left it, {drift}")));
        match self.site.foresee(&resource.spec, seen) {
            Ok(note) => detail.extend(note.map(|note| note.reason)),
            Err(trouble) => return self.later(trouble),
        }
        if resource.spec.is_absent() {
            return Said::plain(What::Remove, detail);
        }
        match &resource.spec {
            Spec::File(file) => {
                let was_secret = self.secrets.holds(&resource.key);
                detail.extend(diff::lines(self.site, file, seen, was_secret, &mut self.room));
            }
            Spec::Directory(DirectorySpec { present: Some(present), .. }) if *seen == Seen::Nothing => {
                let (mode, owner, group) = (present.mode, &present.owner, &present.group);
                detail.push(format!("it would be made: mode {mode}, owner {owner}, group {group}"));
            }
            Spec::Directory(_) | Spec::Package(_) | Spec::Unit(_) => {}
        }
        if !self.site.sets_owner {
            detail.push("owner and group are not set in a sandbox".to_owned());
        }
        Said::plain(What::Change, detail)
    }

    fn obstacle(&self, resource: &Resource, seen: &Seen) -> Option<Trouble> {
        let path = resource.key.path()?;
        if let Some(trouble) = self.ahead.way(path) {
            return Some(trouble);
        }
        let mounted = || {
            let (dir, name) = self.site.walker.parent(path).ok()?;
            dir.mounted(name).map(Trouble::mount_point)
        };
        match (seen, &resource.spec) {
            (Seen::Nothing, _) => None,
            (_, Spec::Directory(spec)) if spec.present.is_none() => {
                mounted().or_else(|| self.holds_something(resource))
            }
            (_, Spec::File(_)) => mounted(),
            (_, Spec::Directory(_) | Spec::Package(_) | Spec::Unit(_)) => None,
        }
    }

    fn holds_something(&self, resource: &Resource) -> Option<Trouble> {
        let entries = self.ahead.entries(resource.key.path()?).filter(|entries| *entries > 0)?;
        Some(Trouble::refused("not_empty", format!("left: holds {} entries not ours", counted(entries))))
    }
}
