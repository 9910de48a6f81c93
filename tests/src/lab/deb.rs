//! A Debian package made by a test: a few files, scripts and fields, built by `dpkg-deb` as any other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::tool::Tool;

/// A package to be built.
#[derive(Debug, Clone)]
pub struct Deb {
    name: String,
    version: String,
    architecture: String,
    fields: Vec<(String, String)>,
    files: Vec<(String, Vec<u8>, u32)>,
    scripts: Vec<(String, String)>,
    triggers: Vec<String>,
    conffiles: Vec<String>,
}

impl Deb {
    /// A package for every architecture, with nothing in it.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: "all".to_owned(),
            fields: Vec::new(),
            files: Vec::new(),
            scripts: Vec::new(),
            triggers: Vec::new(),
            conffiles: Vec::new(),
        }
    }

    /// For one architecture, as `amd64`.
    #[must_use]
    pub fn architecture(mut self, architecture: &str) -> Self {
        architecture.clone_into(&mut self.architecture);
        self
    }

    /// A field of its control file: `Depends`, `Conflicts`, `Replaces`, `Essential` …
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A file, owned by root.
    #[must_use]
    pub fn file(mut self, path: &str, bytes: impl AsRef<[u8]>, mode: u32) -> Self {
        self.files.push((path.to_owned(), bytes.as_ref().to_vec(), mode));
        self
    }

    /// A file that dpkg asks about when its operator changed it.
    #[must_use]
    pub fn conffile(mut self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.conffiles.push(path.to_owned());
        self.file(path, bytes, 0o644)
    }

    /// A unit file, where packages put theirs. Enabling and starting it is a script's work.
    #[must_use]
    pub fn unit(self, name: &str, text: &str) -> Self {
        self.file(&format!("/usr/lib/systemd/system/{name}"), text, 0o644)
    }

    /// A maintainer script: `preinst`, `postinst`, `prerm`, `postrm`. The first line that begins it is added.
    #[must_use]
    pub fn script(mut self, name: &str, lines: &str) -> Self {
        self.scripts.push((name.to_owned(), format!("#!/bin/sh\nset -e\n{lines}\n")));
        self
    }

    /// A line on triggers: `interest-noawait /usr/share/it`.
    #[must_use]
    pub fn trigger(mut self, line: &str) -> Self {
        self.triggers.push(line.to_owned());
        self
    }

    /// Builds it into `folder`, under the name packages have; gives back the file.
    pub fn build_into(&self, folder: &Path) -> PathBuf {
        let tree = tempfile::tempdir_in(folder).expect("a folder for the package's tree");
        for (path, bytes, mode) in &self.files {
            write(&tree.path().join(path.trim_start_matches('/')), bytes, *mode);
        }
        let control = tree.path().join("DEBIAN");
        write(&control.join("control"), self.control().as_bytes(), 0o644);
        for (name, text) in &self.scripts {
            write(&control.join(name), text.as_bytes(), 0o755);
        }
        for (name, lines) in [("conffiles", &self.conffiles), ("triggers", &self.triggers)] {
            if !lines.is_empty() {
                write(&control.join(name), format!("{}\n", lines.join("\n")).as_bytes(), 0o644);
            }
        }
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755))
            .expect("the package's root folder");
        let file = folder.join(format!(
            "{}_{}_{}.deb",
            self.name,
            self.version.replace(':', "%3a"),
            self.architecture
        ));
        let [from, to] = [tree.path(), &file].map(|path| path.display().to_string());
        Tool::new(&["dpkg-deb", "--root-owner-group", "-Znone", "--build", &from, &to]).must();
        file
    }

    fn control(&self) -> String {
        let Self { name, version, architecture, .. } = self;
        let mut text = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: The lab <lab@localhost>\n"
        );
        for (field, value) in &self.fields {
            text.push_str(&format!("{field}: {value}\n"));
        }
        text.push_str("Description: made by a test\n");
        text
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    fs::create_dir_all(path.parent().expect("a path with a folder")).expect("a folder of the package's tree");
    fs::write(path, bytes).expect("a file of the package's tree");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of the package's tree");
}
