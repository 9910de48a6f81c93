//! apt and dpkg: they bring and take packages in a database of dpkg's own form.

use super::*;

/// apt's status for a failure.
const NO: i32 = 100;

impl Scripted {
    pub(super) fn write(&self, state: &State) {
        let paragraph = |(name, (version, words)): (&String, &(String, String))| {
            format!("Package: {name}\nStatus: {words}\nArchitecture: amd64\nVersion: {version}\n")
        };
        let itself = ("dpkg".to_owned(), ("1.21.22".to_owned(), "install ok installed".to_owned()));
        let all = state.installed.iter().chain([(&itself.0, &itself.1)]);
        let text = all.map(paragraph).collect::<Vec<_>>().join("\n");
        std::fs::write(self.root.join("var/lib/dpkg/status"), text).unwrap();
    }

    pub(super) fn apt(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        let mut state = self.state();
        if words.contains(&"update") {
            state.calls.push("update".into());
            if let Some(Lie::Fails(words)) = state.lies.get("update") {
                return said(NO, "", *words);
            }
            return match state.newer.clone() {
                None => said(NO, "", "E: The repository 'file:/repo ./ Release' is not signed.\n"),
                Some(newer) => {
                    state.sources.extend(newer);
                    said(0, "", "")
                }
            };
        }
        if words.contains(&"indextargets") {
            return said(0, "http://x/ stable main\n", "");
        }
        let names = words.iter().skip_while(|word| **word != "--").skip(1);
        let (mut install, mut remove) = (Vec::new(), Vec::new());
        for word in names.copied() {
            match word.strip_suffix('-') {
                Some(name) => remove.push(name.to_owned()),
                None => match state.offered(word) {
                    Ok(offer) => install.push(offer),
                    Err(error) => return said(NO, "", error),
                },
            }
        }
        // Without this word apt leaves what it calls installed already, though it was cut short.
        if !words.contains(&"--reinstall") {
            let half =
                |name: &str| state.installed.get(name).is_some_and(|(_, w)| w.ends_with("half-installed"));
            install.retain(|(name, _)| !half(name));
        }
        let simulates = words.contains(&"-s");
        let word = if simulates { "simulate" } else { "install" };
        state.calls.push(format!(
            "{word} {}",
            words[words.iter().position(|w| *w == "--").unwrap() + 1..].join(" ")
        ));
        if let (true, Some(Lie::SaysBefore(words))) = (simulates, state.lies.get("install")) {
            return said(NO, *words, "E: Unable to correct problems, you have held broken packages.\n");
        }
        let own_sources = !words.iter().any(|word| word.starts_with("Dir::Etc::SourceList="));
        let unproven = |(name, _): &(String, Offer)| !own_sources && state.unproven.contains(&name.as_str());
        // Simulating, apt does not ask who proves it.
        if simulates {
            said(0, state.simulate(&install, &remove), "")
        } else if let Some((name, _)) = install.iter().find(|one| unproven(one)) {
            let list = format!("WARNING: The following packages cannot be authenticated!\n  {name}\n");
            said(
                NO,
                list,
                "E: There were unauthenticated packages and -y was used without --allow-unauthenticated\n",
            )
        } else {
            self.transact(state, &install, &remove)
        }
    }

    fn transact(
        &self,
        mut state: MutexGuard<'_, State>,
        install: &[(String, Offer)],
        remove: &[String],
    ) -> Result<Ran, ProgramError> {
        let once = state.lies.remove("install once");
        let lie = once.or(state.lies.get("install").copied());
        if let Some(said) = lie.and_then(|lie| lie.instead(NO)) {
            return said;
        }
        state.now += 10;
        if let Some(Lie::IsKilled(status)) = lie {
            for (at, (name, offer)) in install.iter().enumerate() {
                let words = if at == 0 { "install ok unpacked" } else { "install ok installed" };
                state.installed.insert(name.clone(), (offer.version.into(), words.into()));
            }
            self.write(&state);
            return said(status, "", "");
        }
        let mut broken = false;
        for (name, offer) in install {
            let words = if offer.breaks { "install ok half-configured" } else { "install ok installed" };
            broken |= offer.breaks;
            state.installed.insert(name.clone(), (offer.version.into(), words.into()));
            for gone in &offer.removes {
                state.installed.remove(*gone);
            }
            if let Some((name, mut unit)) = state.brings.get(name).cloned() {
                unit.began = if unit.active == "active" { state.now } else { 0 };
                state.units.insert(name, unit);
            }
        }
        for name in remove {
            if let Some((_, words)) = state.installed.get_mut(name) {
                *words = "deinstall ok config-files".into();
            }
        }
        self.write(&state);
        match lie {
            Some(Lie::Dies(_)) => die(),
            Some(Lie::TakesLong) => Err(ProgramError::NotAwaited("systemd-run".into())),
            Some(_) => said(NO, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"),
            None if broken => said(NO, "", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n"),
            None => said(0, "", ""),
        }
    }

    /// Finishes what it can, and puts its journal into its status.
    pub(super) fn configure(&self, words: &[&str]) -> Result<Ran, ProgramError> {
        assert_eq!(words.last(), Some(&"-a"), "dpkg is only told to configure");
        let mut state = self.state();
        state.calls.push("configure".into());
        match state.lies.get("configure") {
            Some(Lie::Fails(words)) => return said(1, "", *words),
            Some(Lie::IsLocked) => {
                let words = "dpkg: error: dpkg frontend lock was locked by another process with pid 4242\n";
                return said(2, "", words);
            }
            Some(_) | None => {}
        }
        let ready = ["install ok unpacked", "install ok half-configured"];
        for (_, words) in state.installed.values_mut().filter(|(_, words)| ready.contains(&words.as_str())) {
            *words = "install ok installed".into();
        }
        for entry in std::fs::read_dir(self.root.join("var/lib/dpkg/updates")).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
        self.write(&state);
        said(0, "", "")
    }
}

impl State {
    fn offered(&self, word: &str) -> Result<(String, Offer), String> {
        let (name, version) =
            word.split_once('=').map_or((word, None), |(name, version)| (name, Some(version)));
        let offers = self.sources.get(name).ok_or(format!("E: Unable to locate package {name}\n"))?;
        let offer = offers.iter().find(|offer| version.is_none_or(|version| offer.version == version));
        let missing = || format!("E: Version '{}' for '{name}' was not found\n", version.unwrap_or_default());
        offer.map(|offer| (name.to_owned(), offer.clone())).ok_or_else(missing)
    }

    fn simulate(&self, install: &[(String, Offer)], remove: &[String]) -> String {
        let mut lines = Vec::new();
        let line = |name: &str, new: &str| {
            let old = self.installed.get(name).map(|(old, _)| format!(" [{old}]")).unwrap_or_default();
            format!("Inst {name}{old} ({new} Test:1/stable [amd64])")
        };
        for (name, offer) in install {
            lines.extend(
                offer
                    .removes
                    .iter()
                    .filter(|gone| self.installed.contains_key(**gone))
                    .map(|gone| format!("Remv {gone} [1]")),
            );
            lines.extend(offer.lowers.iter().map(|(name, to)| line(name, to)));
            lines.push(line(name, offer.version));
        }
        lines.extend(remove.iter().map(|name| format!("Remv {name} [1]")));
        lines.join("\n")
    }
}
