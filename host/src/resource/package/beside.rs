//! The configuration files of a new version that lie beside those that were kept: dpkg and ucf are told to keep what the
//! operator has, and put what the package brings under another name (O-12). It is only looked, never changed.

use super::Tools;
use super::dpkg::bare;

const INFO: &str = "/var/lib/dpkg/info";
/// Files that scripts hand to `ucf`, one a line: the package, then the path.
const REGISTRY: &str = "/var/lib/ucf/registry";
/// What a new version is called beside what was kept.
const ENDINGS: [&str; 3] = [".dpkg-dist", ".dpkg-new", ".ucf-dist"];
/// A package has few of them; one that names thousands is not looked through to its end.
const MOST: usize = 500;

/// Those that lie beside the configuration of this package now, by path.
pub(super) fn new_versions(tools: &Tools<'_>, name: &str) -> Vec<String> {
    let kept = conffiles(tools, name).into_iter().chain(registered(tools, name)).take(MOST);
    let beside = kept.flat_map(|path| ENDINGS.map(|ending| format!("{path}{ending}")));
    // A name that leads elsewhere is not followed.
    beside.filter(|path| tools.at(path).symlink_metadata().is_ok_and(|file| file.is_file())).collect()
}

fn conffiles(tools: &Tools<'_>, name: &str) -> Vec<String> {
    let read = |of: String| std::fs::read_to_string(tools.at(INFO).join(of)).ok();
    // What is of several architectures has its list under one more word.
    let elsewhere = || {
        let entries = std::fs::read_dir(tools.at(INFO)).ok()?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let is_it = |file: &String| file.strip_suffix(".conffiles").is_some_and(|of| bare(of) == name);
        names.into_iter().find(is_it).and_then(read)
    };
    let list = read(format!("{name}.conffiles")).or_else(elsewhere).unwrap_or_default();
    // Before a path there may be a word on what is done with it.
    list.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..))).map(str::to_owned).collect()
}

fn registered(tools: &Tools<'_>, name: &str) -> Vec<String> {
    let registry = std::fs::read_to_string(tools.at(REGISTRY)).unwrap_or_default();
    let of_it = registry.lines().filter_map(|line| line.split_once(char::is_whitespace));
    of_it.filter(|(of, _)| *of == name).map(|(_, path)| path.trim().to_owned()).collect()
}
