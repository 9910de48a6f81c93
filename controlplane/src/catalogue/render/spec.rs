//! What a resource that is written becomes: rendered strings as values of their kinds, judged here once (S-14), and
//! refused where they would reach the host itself (H-02).

use std::collections::BTreeSet;
use std::str::FromStr;

use tenure_protocol::id::{Digest, Malformed};
use tenure_protocol::path::DeclaredPath;
use tenure_protocol::refusal::Refusal;
use tenure_protocol::resource::{
    Content, DirectoryPresent, DirectorySpec, FilePresent, FileSpec, Mode, PackageName, PackageSpec,
    PackageWanted, Resource, ResourceKey, Spec, UnitName, UnitSpec,
};
use tenure_protocol::text::shown;
use toml::Spanned;

use super::{Press, Showing};
use crate::catalogue::edges::{Edge, How, Placed};
use crate::catalogue::mistake::Mistake;
use crate::catalogue::module::{Access, Body, Says, UnitSays, Written};
use crate::catalogue::own;

impl<'f> Press<'_, 'f> {
    /// The resource, and the bytes of its content where it has one.
    pub(super) fn resource(&self, written: &Written) -> Result<(Placed<'f>, Option<Vec<u8>>), Refusal> {
        let mut edges = self.edges(&written.needs, How::Needs)?;
        let (spec, content) = match &written.says {
            Says::Package(version) => (self.package(&written.name, version.as_ref())?, None),
            Says::Directory(says) => (self.directory(&written.name, says.as_ref())?, None),
            Says::File(says) => self.file_spec(&written.name, says.as_ref())?,
            Says::Unit(says) => {
                let (spec, triggers) = self.unit(&written.name, says)?;
                edges.extend(triggers);
                (spec, None)
            }
        };
        let key = spec.key();
        let resource = Resource { key, module: self.module.name.clone(), needs: Vec::new(), spec };
        Ok((Placed { resource, source: self.module.source, at: written.at, edges }, content))
    }

    fn package(&self, name: &Spanned<String>, version: Option<&Spanned<String>>) -> Result<Spec, Refusal> {
        let at = name.span().start;
        let name = PackageName::new(&self.string(name)?).map_err(|error| self.bad_value(error, at))?;
        let wanted = match version {
            Some(version) => self.version(version)?,
            None => PackageWanted::Absent,
        };
        if wanted == PackageWanted::Absent && own::is_own_package(&name) {
            return Err(Mistake::OwnPackage(name).at(self.module.source, at));
        }
        Ok(Spec::Package(PackageSpec { name, wanted }))
    }

    /// A version; `absent` is none here, so that no setting turns what should be there into what should be gone.
    fn version(&self, written: &Spanned<String>) -> Result<PackageWanted, Refusal> {
        match self.value(Some(written), "")? {
            PackageWanted::Absent => {
                let rule = "`present`, a version, or a prefix as in `1.22.*`; `absent = true` in its place to have the package gone";
                Err(self.bad_value(Malformed::new("package version", "absent", rule), written.span().start))
            }
            wanted @ (PackageWanted::Present | PackageWanted::Exact(_) | PackageWanted::Prefix(_)) => {
                Ok(wanted)
            }
        }
    }

    fn directory(&self, path: &Spanned<String>, says: Option<&Access>) -> Result<Spec, Refusal> {
        let path = self.path(path)?;
        let Some(access) = says else { return Ok(Spec::Directory(DirectorySpec { path, present: None })) };
        let present = DirectoryPresent {
            mode: self.value(access.mode.as_ref(), "0755")?,
            owner: self.value(access.owner.as_ref(), "root")?,
            group: self.value(access.group.as_ref(), "root")?,
        };
        Ok(Spec::Directory(DirectorySpec { path, present: Some(present) }))
    }

    fn file_spec(
        &self,
        path: &Spanned<String>,
        says: Option<&(Access, Body)>,
    ) -> Result<(Spec, Option<Vec<u8>>), Refusal> {
        let path = self.path(path)?;
        let Some((access, body)) = says else {
            return Ok((Spec::File(FileSpec { path, present: None }), None));
        };
        let owner = self.value(access.owner.as_ref(), "root")?;
        let group = self.value(access.group.as_ref(), "root")?;
        let mode: Mode = self.value(access.mode.as_ref(), "0644")?;
        let is_secret = body.sensitive || mode.is_closed_to_others();
        let bytes = self.bytes(body, if is_secret { Showing::Secret } else { Showing::Open })?;
        let content =
            Content { sha256: Digest::of(&bytes), size: u64::try_from(bytes.len()).unwrap_or(u64::MAX) };
        let Body { create_once, replace_link, sensitive, .. } = *body;
        let present = FilePresent { content, mode, owner, group, create_once, replace_link, sensitive };
        Ok((Spec::File(FileSpec { path, present: Some(present) }), Some(bytes)))
    }

    /// The unit, and what it is restarted or reloaded on.
    fn unit(&self, name: &Spanned<String>, says: &UnitSays) -> Result<(Spec, Vec<Edge>), Refusal> {
        let spec = UnitSpec {
            name: self.unit_name(name)?,
            enabled: self.truth("value of `enabled`", says.enabled.as_ref())?,
            running: self.truth("value of `running`", says.running.as_ref())?,
            masked: self.truth("value of `masked`", says.masked.as_ref())?,
            restart_on: Vec::new(),
            reload_on: Vec::new(),
        };
        self.masked_alone(&spec, says)?;
        let mut triggers = self.edges(&says.restart_on, How::RestartsOn)?;
        let reload = self.edges(&says.reload_on, How::ReloadsOn)?;
        let keys = |edges: &[Edge]| edges.iter().map(|edge| edge.to.clone()).collect::<Vec<_>>();
        let (restart_on, reload_on) = (keys(&triggers), keys(&reload));
        let restarts: BTreeSet<&ResourceKey> = restart_on.iter().collect();
        if let Some(both) = reload.iter().find(|edge| restarts.contains(&edge.to)) {
            let mistake =
                Mistake::RestartAndReload { key: ResourceKey::Unit(spec.name), on: both.to.clone() };
            return Err(mistake.at(self.module.source, both.at));
        }
        triggers.extend(reload);
        Ok((Spec::Unit(UnitSpec { restart_on, reload_on, ..spec }), triggers))
    }

    /// What is masked can be nothing else.
    fn masked_alone(&self, spec: &UnitSpec, says: &UnitSays) -> Result<(), Refusal> {
        let wanted = [("enabled", spec.enabled), ("running", spec.running)];
        let Some((field, _)) = wanted.into_iter().find(|(_, is)| *is == Some(true)) else { return Ok(()) };
        match (&says.masked, spec.masked) {
            (Some(masked), Some(true)) => {
                let mistake = Mistake::MaskedWith { key: ResourceKey::Unit(spec.name.clone()), field };
                Err(mistake.at(self.module.source, masked.span().start))
            }
            (_, Some(false) | None) | (None, Some(true)) => Ok(()),
        }
    }

    fn unit_name(&self, written: &Spanned<String>) -> Result<UnitName, Refusal> {
        let (text, at) = (self.string(written)?, written.span().start);
        // Before its form is judged: without its kind it is no name of a unit, and still the host's.
        if own::is_own_unit(&text) {
            return Err(Mistake::OwnUnit(shown(&text, 80)).at(self.module.source, at));
        }
        UnitName::new(&text).map_err(|error| self.bad_value(error, at))
    }

    fn path(&self, written: &Spanned<String>) -> Result<DeclaredPath, Refusal> {
        let (source, at) = (self.module.source, written.span().start);
        let path =
            DeclaredPath::new(&self.string(written)?).map_err(|error| Mistake::Path(error).at(source, at))?;
        if own::is_own(&path) {
            return Err(Mistake::OwnPath(shown(path.as_str(), 200)).at(source, at));
        }
        Ok(path)
    }

    /// A string as a value of its kind; `default` where it is left out.
    fn value<T>(&self, written: Option<&Spanned<String>>, default: &str) -> Result<T, Refusal>
    where
        T: FromStr<Err = Malformed>,
    {
        let (text, at) = match written {
            Some(written) => (self.string(written)?, written.span().start),
            None => (default.to_owned(), 0),
        };
        text.parse().map_err(|error| self.bad_value(error, at))
    }

    fn truth(&self, what: &'static str, written: Option<&Spanned<String>>) -> Result<Option<bool>, Refusal> {
        let Some(written) = written else { return Ok(None) };
        match self.string(written)?.as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            other => Err(self.bad_value(Malformed::new(what, other, "true or false"), written.span().start)),
        }
    }

    fn bad_value(&self, error: Malformed, at: usize) -> Refusal {
        Mistake::BadValue(error).at(self.module.source, at)
    }

    /// Keys of other resources, none twice however it is spelled.
    fn edges(&self, written: &[Spanned<String>], how: How) -> Result<Vec<Edge>, Refusal> {
        let source = self.module.source;
        let mut seen = BTreeSet::new();
        let mut edges = Vec::with_capacity(written.len());
        for text in written {
            let at = text.span().start;
            let to: ResourceKey =
                self.string(text)?.parse().map_err(|error| Mistake::BadNeed(error).at(source, at))?;
            if !seen.insert(to.clone()) {
                return Err(Mistake::ListedTwice(shown(&to.to_string(), 80)).at(source, at));
            }
            edges.push(Edge { how, to, at });
        }
        Ok(edges)
    }
}
