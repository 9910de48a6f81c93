//! What each mistake means and what to do about it.

use tenure_protocol::path::PathError;
use tenure_protocol::refusal::Explain;

use super::Mistake;
use crate::catalogue::edges::How;

impl Explain for Mistake {
    fn code(&self) -> &'static str {
        match self {
            Self::NoFleet { .. } => "no_fleet",
            Self::NotText(_) => "not_text",
            Self::MalformedToml(_) => "malformed_toml",
            Self::UnknownField { .. } => "unknown_field",
            Self::LaterKind(_) => "not_yet",
            Self::WrongType { .. } => "wrong_type",
            Self::MissingField { .. } => "missing_field",
            Self::ListedTwice(_) => "listed_twice",
            Self::BadName(_) => "bad_name",
            Self::NoNodes => "no_nodes",
            Self::UnknownGroup { .. } => "unknown_group",
            Self::UnknownModule { .. } => "unknown_module",
            Self::OtherModuleName { .. } => "other_module_name",
            Self::UnknownSetting { .. } => "unknown_setting",
            Self::ReservedSetting => "reserved_setting",
            Self::SettingsWithoutModule { .. } => "settings_without_module",
            Self::GroupsDisagree { .. } => "groups_disagree",
            Self::ModuleNeedMissing { .. } => "module_need_missing",
            Self::ModuleCircle(_) => "module_circle",
            Self::Undefined { .. } => "undefined_setting",
            Self::Template { .. } => "template_failed",
            Self::Path(error) => path_code(error),
            Self::OwnPath(_) => "own_path",
            Self::OwnUnit(_) => "own_unit",
            Self::OwnPackage(_) => "own_package",
            Self::BadValue(_) => "bad_value",
            Self::BadNeed(_) => "bad_need",
            Self::AbsentWith { .. } => "absent_with_more",
            Self::UnitAbsent => "unit_absent",
            Self::UnitSaysNothing => "unit_says_nothing",
            Self::MaskedWith { .. } => "masked_with_more",
            Self::RestartAndReload { .. } => "restart_and_reload",
            Self::NoContent => "file_without_content",
            Self::TwoContents(..) => "two_contents",
            Self::OutsideModule(_) => "outside_module",
            Self::NoSuchFile { .. } => "no_such_file",
            Self::Twice { .. } => "declared_twice",
            Self::Below { .. } => "declared_below",
            Self::NeedMissing { .. } => "need_missing",
            Self::Circle(_) => "circle",
            Self::TooLarge { .. } => "declaration_too_large",
            Self::UnknownNode(_) => "unknown_node",
            Self::NodeNotInFolder { .. } => "node_not_in_folder",
            Self::NotReadable(_) => "not_readable_back",
        }
    }

    fn meaning(&self) -> String {
        meaning(self).to_owned()
    }

    fn remedy(&self) -> String {
        remedy(self)
    }
}

fn path_code(error: &PathError) -> &'static str {
    match error {
        PathError::Relative(_) => "relative_path",
        PathError::Parent(_) => "parent_in_path",
        PathError::Control(_) => "control_in_path",
        PathError::Long(_) => "long_path",
        PathError::Root => "root_path",
        PathError::Kernel(..) => "kernel_path",
    }
}

const fn meaning(mistake: &Mistake) -> &'static str {
    match mistake {
        Mistake::NoFleet { .. } => {
            "a fleet folder begins with the file that says which node has which modules"
        }
        Mistake::NotText(_) => {
            "only text can be read as TOML or rendered as a template; nothing was declared"
        }
        Mistake::MalformedToml(_) => "the file is not valid TOML; nothing was declared",
        Mistake::UnknownField { .. } => {
            "what is not understood is refused rather than passed over; nothing was declared"
        }
        Mistake::MissingField { .. } => "there is no sensible value to take instead; nothing was declared",
        Mistake::WrongType { .. } => "what was meant is not guessed at; nothing was declared",
        Mistake::LaterKind(_) => {
            "it would be left undone silently, so the folder is refused; nothing was declared"
        }
        Mistake::ListedTwice(_) => "one of the two is likely meant to be another; nothing was declared",
        Mistake::BadName(_) => "a name that is not one could be taken for another; nothing was declared",
        Mistake::BadNeed(_) => {
            "what stands here names another resource of the same node; nothing was declared"
        }
        Mistake::BadValue(_) => "once rendered it has not the form of its kind; nothing was declared",
        Mistake::NoNodes => "the folder declares nothing for anybody; nothing was declared",
        Mistake::UnknownGroup { .. } | Mistake::UnknownModule { .. } => {
            "a node would get less than was meant; nothing was declared"
        }
        Mistake::OtherModuleName { .. } => {
            "a module has the name of its folder, so that it is found; nothing was declared"
        }
        Mistake::UnknownSetting { .. } => {
            "a module's settings are those of its [settings] table, and this value would have no effect; nothing was declared"
        }
        Mistake::ReservedSetting => "templates know the name of the node by it; nothing was declared",
        Mistake::SettingsWithoutModule { .. } => "these settings would have no effect; nothing was declared",
        Mistake::GroupsDisagree { .. } => "neither group is above the other; nothing was declared",
        Mistake::ModuleNeedMissing { .. } => {
            "the module counts on what the other one brings; nothing was declared"
        }
        Mistake::ModuleCircle(_) | Mistake::Circle(_) => {
            "none of them could ever be first; nothing was declared"
        }
        Mistake::Undefined { .. } => {
            "an empty text in its place would be a silent mistake; nothing was declared"
        }
        Mistake::Template { .. } => "no text came of it; nothing was declared",
        Mistake::Path(error) => path_meaning(error),
        Mistake::OwnPath(_) | Mistake::OwnUnit(_) => {
            "the host never manages itself, so that no declaration can cut it off; nothing was declared"
        }
        Mistake::OwnPackage(_) => {
            "a declaration may raise the host and never removes it, since nothing could bring it back; nothing was declared"
        }
        Mistake::AbsentWith { .. } => {
            "what should be gone has a path or name, and needs, and nothing else; nothing was declared"
        }
        Mistake::UnitAbsent => {
            "what a unit is stands in a file; here it only says whether it starts and runs; nothing was declared"
        }
        Mistake::UnitSaysNothing => "it would be declared and never touched; nothing was declared",
        Mistake::MaskedWith { .. } => {
            "what is masked neither runs nor starts with the machine; nothing was declared"
        }
        Mistake::RestartAndReload { .. } => {
            "a restart reads everything anew, so the reload would never come; nothing was declared"
        }
        Mistake::NoContent | Mistake::TwoContents(..) => {
            "a file has its content from exactly one place; nothing was declared"
        }
        Mistake::OutsideModule(_) => "a module brings its own files, below its folder; nothing was declared",
        Mistake::NoSuchFile { .. } => "the file would have no content; nothing was declared",
        Mistake::Twice { .. } => {
            "one path or name can be only one thing, however it is spelled; nothing was declared"
        }
        Mistake::Below { .. } => "both cannot be true of one machine; nothing was declared",
        Mistake::NeedMissing { how: How::Needs, .. } => "it would wait for ever; nothing was declared",
        Mistake::NeedMissing { how: How::RestartsOn | How::ReloadsOn, .. } => {
            "nothing would ever set it off; nothing was declared"
        }
        Mistake::TooLarge { .. } => "a node could not take it; nothing was declared",
        Mistake::UnknownNode(_) => "nothing was done, for this node or any other",
        Mistake::NodeNotInFolder { .. } => "there is nothing to render for it; nothing was done",
        Mistake::NotReadable(_) => "this is our fault: no node would admit it; nothing was declared",
    }
}

const fn path_meaning(error: &PathError) -> &'static str {
    match error {
        PathError::Relative(_) => {
            "a machine has no place that a relative path is relative to; nothing was declared"
        }
        PathError::Parent(_) => "where `..` leads depends on links of the machine; nothing was declared",
        PathError::Control(_) => "such a name cannot be shown or typed safely; nothing was declared",
        PathError::Long(_) => "no file system would take it; nothing was declared",
        PathError::Root => "a declaration names things below the root; nothing was declared",
        PathError::Kernel(..) => {
            "what lies there is not kept on a disk and is not a file; nothing was declared"
        }
    }
}

fn remedy(mistake: &Mistake) -> String {
    match mistake {
        Mistake::NoFleet { .. } => "give the folder that holds `fleet.toml`: `tenure declare DIR`".to_owned(),
        Mistake::NotText(_) => {
            "save it as UTF-8; bytes go to a machine verbatim by `source = \"NAME\"`".to_owned()
        }
        Mistake::MalformedToml(_) => "correct the line and declare again".to_owned(),
        Mistake::UnknownField { .. } => "correct or remove the field and declare again".to_owned(),
        Mistake::LaterKind(kind) => {
            format!("remove `{kind}` from the module until a later version performs it")
        }
        Mistake::WrongType { wanted, .. } => format!("write {wanted}"),
        Mistake::MissingField { name: "version", .. } => {
            "add `version = \"present\"`, or another version; `absent = true` to have it gone".to_owned()
        }
        Mistake::MissingField { name, .. } => format!("add `{name} = …`"),
        Mistake::ListedTwice(_) => "remove one of them".to_owned(),
        Mistake::BadNeed(_) => {
            "write KIND:NAME of a declared resource, as in \"file:/etc/app.conf\"".to_owned()
        }
        Mistake::BadName(malformed) | Mistake::BadValue(malformed) => format!("write {}", malformed.rule),
        Mistake::NoNodes => {
            "name the nodes: `[node.\"NAME\"]` with `groups` or `modules`; `tenure nodes` lists them"
                .to_owned()
        }
        Mistake::UnknownGroup { .. } => "correct the name, or add `[group.NAME]` to `fleet.toml`".to_owned(),
        Mistake::UnknownModule { .. } => "correct the name, or add `modules/NAME/module.toml`".to_owned(),
        Mistake::OtherModuleName { folder, .. } => {
            format!("write `name = \"{folder}\"`, or rename the folder")
        }
        Mistake::UnknownSetting { .. } => {
            "correct the name, or give the module's [settings] table a default for it".to_owned()
        }
        Mistake::ReservedSetting => "rename the setting".to_owned(),
        Mistake::SettingsWithoutModule { module, .. } => {
            format!("add `{module}` to the modules of the node or of its groups, or remove the settings")
        }
        Mistake::GroupsDisagree { node, module, setting, .. } => {
            format!(
                "give the node its own value: `[node.\"{node}\"]` with `settings = {{ {module} = {{ {setting} = … }} }}`"
            )
        }
        Mistake::ModuleNeedMissing { node, needs, .. } => {
            format!("add `{needs}` to the modules of `{node}` or of its groups")
        }
        Mistake::ModuleCircle(_) => "remove one of these needs".to_owned(),
        Mistake::Circle(_) => {
            "remove one step of it: an entry of `needs`, `restart_on` or `reload_on`, or a module's need".to_owned()
        }
        Mistake::Undefined { .. } => {
            "correct the name, or give the module's [settings] table a default for it".to_owned()
        }
        Mistake::Template { .. } => "correct the template and declare again".to_owned(),
        Mistake::Path(error) => path_remedy(error).to_owned(),
        Mistake::OwnPath(_) => {
            "remove the resource; the host's package brings and keeps its own files".to_owned()
        }
        Mistake::OwnUnit(_) => {
            "remove the resource; the host's package brings and keeps its own unit".to_owned()
        }
        Mistake::OwnPackage(_) => {
            "give it a `version`, or remove the resource; `tenure retire NODE` ends a node".to_owned()
        }
        Mistake::UnitAbsent => {
            "write `enabled = false` and `running = false`, and declare its file absent: [[file]] with `absent = true`"
                .to_owned()
        }
        Mistake::UnitSaysNothing => {
            "add one of them, as in `running = true`, or remove the unit".to_owned()
        }
        Mistake::MaskedWith { field, .. } => format!("remove `masked = true`, or `{field} = true`"),
        Mistake::RestartAndReload { on, .. } => {
            format!("remove {on} from `reload_on`, or from `restart_on` if a reload is enough")
        }
        Mistake::AbsentWith { field, .. } => format!("remove `{field}`, or `absent = true`"),
        Mistake::NoContent => {
            "add one of them: `content = \"…\"`, or the name of a file beside `module.toml`".to_owned()
        }
        Mistake::TwoContents(..) => "remove one of them".to_owned(),
        Mistake::OutsideModule(_) => {
            "name a file beside `module.toml`, without `..` and without a leading `/`".to_owned()
        }
        Mistake::NoSuchFile { .. } => "correct the name, or add the file beside `module.toml`".to_owned(),
        Mistake::Twice { .. } => "remove one of the two".to_owned(),
        Mistake::Below { above, .. } => format!("remove one of the two, or declare {above} as a directory"),
        Mistake::NeedMissing { how: How::Needs, .. } => "correct the key, or declare what it needs".to_owned(),
        Mistake::NeedMissing { how: How::RestartsOn | How::ReloadsOn, to, .. } => {
            format!("correct the key, or declare {to}")
        }
        Mistake::TooLarge { .. } => "declare fewer or smaller resources, or split the module".to_owned(),
        Mistake::UnknownNode(_) => {
            "correct the name, or run `tenure invite NODE` first; `tenure nodes` lists them".to_owned()
        }
        Mistake::NodeNotInFolder { node, .. } => {
            format!("correct the name, or add `[node.\"{node}\"]` to `fleet.toml`")
        }
        Mistake::NotReadable(_) => "report this with the folder that shows it".to_owned(),
    }
}

const fn path_remedy(error: &PathError) -> &'static str {
    match error {
        PathError::Relative(_) => "begin the path with `/`",
        PathError::Parent(_) => "write the path without `..`",
        PathError::Control(_) => "write the path without control characters",
        PathError::Long(_) => "shorten the path",
        PathError::Root => "name something below `/`",
        PathError::Kernel(..) => {
            "remove the resource; kernel settings are files of /etc/sysctl.d, /etc/modules-load.d or /etc/udev"
        }
    }
}
