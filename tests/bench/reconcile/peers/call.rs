//! How each program of others is told to keep the files of a subject as they are wanted. Whatever a program keeps of its
//! own it keeps below the subject's folder.

use std::path::PathBuf;

use tenure_protocol::id::Digest;
use tenure_tests::sandbox::text;

use super::super::subject::Subject;
use super::place_of;

/// Arguments, and what is added to the environment.
pub(super) struct Call {
    arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
}

impl Call {
    fn of(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), environment: Vec::new() }
    }

    pub(super) fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }
}

pub(super) fn sums(subject: &Subject) -> Call {
    let list = subject.at("sums");
    let line = |(digest, path): (String, String)| format!("{digest}  {path}\n");
    let digests = subject.files.wanted.iter().map(|file| Digest::of(&file.bytes).to_string());
    let lines: String = digests.zip(paths(subject)).map(line).collect();
    write(&list, lines);
    Call::of(&["--check", "--status", &text(&list)])
}

pub(super) fn rsync(subject: &Subject) -> Call {
    let from = source(subject) + "/srv/";
    Call::of(&["-rc", "--fsync", &from, &(text(&subject.at("root")) + "/srv/")])
}

pub(super) fn cfengine(subject: &Subject) -> Call {
    let (source, work) = (source(subject), state(subject, "cfengine"));
    let promise = |path: String| {
        let from = from(subject, &source, &path);
        format!("  \"{path}\" copy_from => same(\"{from}\"), perms => mode(\"0644\");\n")
    };
    let promises: String = paths(subject).map(promise).collect();
    let policy = work.join("policy.cf");
    write(&policy, format!("{CFENGINE}bundle agent main\n{{\nfiles:\n{promises}}}\n"));
    private(&policy);
    // It has its policies judged by this program, which it looks for among its own.
    let (judge, own) = (place_of("cf-promises").expect("it comes with cf-agent"), work.join("bin"));
    if !own.exists() {
        std::fs::create_dir(&own).expect("a folder of the benchmark");
        std::os::unix::fs::symlink(judge, own.join("cf-promises")).expect("a link of the benchmark");
    }
    let mut call = Call::of(&["--no-lock", "--file", &text(&policy)]);
    call.environment.push(("CFENGINE_TEST_OVERRIDE_WORKDIR", text(&work)));
    call
}

const CFENGINE: &str = "\
body common control { bundlesequence => { \"main\" }; }
body copy_from same(from) { source => \"$(from)\"; compare => \"digest\"; }
body perms mode(mode) { mode => \"$(mode)\"; rxdirs => \"false\"; }
";

pub(super) fn puppet(subject: &Subject) -> Call {
    let state = state(subject, "puppet");
    let resource = |(path, file): (String, &super::super::floor::Wanted)| {
        let content = String::from_utf8_lossy(&file.bytes);
        format!("file {{ '{path}': ensure => file, mode => '0644', content => '{content}' }}\n")
    };
    let manifest = state.join("site.pp");
    write(&manifest, paths(subject).zip(&subject.files.wanted).map(resource).collect());
    let place = |option: &str| format!("--{option}={}", state.join(option).display());
    let places = ["confdir", "vardir", "rundir", "logdir", "publicdir"].map(place);
    let mut arguments = vec!["apply", "--detailed-exitcodes"];
    arguments.extend(places.iter().map(String::as_str));
    let manifest = text(&manifest);
    arguments.push(&manifest);
    let mut call = Call::of(&arguments);
    call.environment.push(("HOME", text(&state)));
    call
}

pub(super) fn ansible(subject: &Subject) -> Call {
    let (source, state) = (source(subject), state(subject, "ansible"));
    let item =
        |path: String| format!("{{\"from\": \"{}\", \"to\": \"{path}\"}}", from(subject, &source, &path));
    let items: Vec<String> = paths(subject).map(item).collect();
    let copy = "{\"src\": \"{{ item.from }}\", \"dest\": \"{{ item.to }}\", \"mode\": \"0644\"}";
    let play = format!(
        "[{{\"hosts\": \"localhost\", \"connection\": \"local\", \"gather_facts\": false, \"tasks\": \
         [{{\"ansible.builtin.copy\": {copy}, \"loop\": [{}]}}]}}]\n",
        items.join(", ")
    );
    let playbook = state.join("play.yml");
    write(&playbook, play);
    let mut call = Call::of(&["--inventory", "localhost,", &text(&playbook)]);
    let home = text(&state);
    for name in ["HOME", "ANSIBLE_HOME", "ANSIBLE_LOCAL_TEMP", "ANSIBLE_REMOTE_TEMP"] {
        call.environment.push((name, home.clone()));
    }
    call
}

fn paths(subject: &Subject) -> impl Iterator<Item = String> {
    let files = &subject.files;
    files.wanted.iter().map(|file| text(&files.directories[file.directory].join(&file.name)))
}

/// A second copy of the wanted files, for those that compare two trees.
fn source(subject: &Subject) -> String {
    let source = subject.at("source");
    if !source.exists() {
        subject.files.moved(&subject.at("root"), &source).write_together();
    }
    text(&source)
}

/// Where in that copy the file of this path lies.
fn from(subject: &Subject, source: &str, path: &str) -> String {
    let below = path.strip_prefix(&text(&subject.at("root"))).expect("they lie below it");
    format!("{source}{below}")
}

fn state(subject: &Subject, of: &str) -> PathBuf {
    let state = subject.at(of);
    std::fs::create_dir_all(&state).expect("a folder of the benchmark");
    state
}

fn write(path: &PathBuf, lines: String) {
    std::fs::write(path, lines).expect("a file of the benchmark");
}

/// CFEngine takes no policy that others may write.
fn private(path: &PathBuf) {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, private).expect("a file of the benchmark");
}
