//! An apt repository made by a test: signed by a key made for it, or by nobody. A machine that uses it has no other
//! source, and has it as a folder of its own, so that it answers with the link cut, too.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::Lab;
use super::deb::Deb;
use super::machine::Machine;
use super::tool::Tool;

/// Whether a repository proves where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Signed by a key that the machine is told to trust.
    Signed,
    /// Signed by a key that the machine is not told of.
    Stranger,
    /// By nobody: apt refuses it unless the machine's configuration allows it.
    Unsigned,
    /// By nobody, and the machine is told to trust it all the same.
    Claimed,
}

impl Trust {
    const fn is_signed(self) -> bool {
        match self {
            Self::Signed | Self::Stranger => true,
            Self::Unsigned | Self::Claimed => false,
        }
    }
}

/// A repository of tiny packages.
pub struct AptRepository {
    folder: PathBuf,
    keys: PathBuf,
    trust: Trust,
}

impl AptRepository {
    /// An empty repository of this lab's.
    #[must_use]
    pub fn new(lab: &Lab, trust: Trust) -> Self {
        let base = tempfile::Builder::new()
            .prefix("apt-")
            .tempdir_in(lab.folder())
            .expect("the run's folder")
            .keep();
        let repository = Self { folder: base.join("repository"), keys: base.join("keys"), trust };
        fs::create_dir(&repository.folder).expect("a folder of the repository's own");
        if trust.is_signed() {
            repository.make_key();
        }
        repository.publish();
        repository
    }

    /// Adds a package; machines see it when they [use](Machine::use_apt) the repository again.
    pub fn add(&self, package: &Deb) {
        self.add_all(std::slice::from_ref(package));
    }

    /// Adds these packages, as [`add`](Self::add).
    pub fn add_all(&self, packages: &[Deb]) {
        for package in packages {
            package.build_into(&self.folder);
        }
        self.publish();
    }

    fn make_key(&self) {
        fs::DirBuilder::new().mode(0o700).create(&self.keys).expect("a folder for keys");
        self.gpg(&["--passphrase", "", "--quick-generate-key", SIGNER, "ed25519", "sign", "never"]);
    }

    fn publish(&self) {
        let packages = self.ftparchive("packages");
        fs::write(self.folder.join("Packages"), packages).expect("the repository's folder");
        let release = self.ftparchive("release");
        fs::write(self.folder.join("Release"), release).expect("the repository's folder");
        if self.trust.is_signed() {
            let [signed, plain] =
                ["InRelease", "Release"].map(|name| self.folder.join(name).display().to_string());
            self.gpg(&["--yes", "--clearsign", "--output", &signed, &plain]);
        }
    }

    fn ftparchive(&self, what: &str) -> String {
        let line = format!("cd '{}' && apt-ftparchive {what} .", self.folder.display());
        format!("{}\n", Tool::new(&["sh", "-c", &line]).must())
    }

    /// Runs gpg with a home of its own, and ends the agent that it starts.
    fn gpg(&self, arguments: &[&str]) -> String {
        let home = self.keys.display().to_string();
        let command: Vec<&str> = ["gpg", "--homedir", &home, "--batch", "--quiet"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let said = Tool::new(&command).run();
        Tool::new(&["gpgconf", "--homedir", &home, "--kill", "all"]).must();
        said.must()
    }

    fn public_key(&self) -> String {
        self.gpg(&["--armor", "--export", SIGNER])
    }
}

impl Machine {
    /// Makes this repository, as it is now, the machine's only source, and reads its lists.
    #[track_caller]
    pub fn use_apt(&self, repository: &AptRepository) {
        self.must(&["rm", "-rf", "/etc/apt/sources.list", "/etc/apt/sources.list.d", PLACE]);
        self.copy_folder_in(&repository.folder, PLACE);
        let signed_by = match repository.trust {
            Trust::Signed => {
                self.write(KEY, repository.public_key());
                format!("[signed-by={KEY}] ")
            }
            Trust::Claimed => "[trusted=yes] ".to_owned(),
            Trust::Stranger | Trust::Unsigned => String::new(),
        };
        // `copy`, not `file`: of a `file` source apt reads the packages' list in place, and believes it on the strength of a
        // signature that it checked earlier.
        self.write("/etc/apt/sources.list.d/lab.list", format!("deb {signed_by}copy:{PLACE} ./\n"));
        let read = self.run(&["apt-get", "update"]);
        // A source that proves nothing is an error to apt; what becomes of that is what the test is about.
        let proves_nothing = matches!(repository.trust, Trust::Stranger | Trust::Unsigned);
        assert!(read.success() || proves_nothing, "{read}");
    }

    fn copy_folder_in(&self, from: &Path, to: &str) {
        for entry in fs::read_dir(from).expect("the repository's folder").flatten() {
            self.copy_in(&entry.path(), &format!("{to}/{}", entry.file_name().display()), 0o644);
        }
    }
}

const SIGNER: &str = "lab@localhost";
const PLACE: &str = "/srv/lab-apt";
const KEY: &str = "/etc/apt/keyrings/lab.asc";
