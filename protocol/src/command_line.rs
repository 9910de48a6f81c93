//! What people type, for each of the three programs: what is wrong with it, said as any refusal is, and the scripts by
//! which a shell completes it. It reads no argument itself and prints nothing; a program's front door calls it. A token
//! among the words is refused before they are read: what is wrong with them would be said with the words themselves.

use std::ffi::OsString;

use clap::ValueEnum;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap_complete::aot;

use crate::refusal::Refusal;
use crate::text::shown;
use crate::token;

/// The shells a script is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// The Bourne again shell.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

impl Shell {
    /// The script that completes `command`, made from the same description that its line is parsed by.
    pub fn script(self, mut command: clap::Command) -> String {
        let shell = match self {
            Self::Bash => aot::Shell::Bash,
            Self::Zsh => aot::Shell::Zsh,
            Self::Fish => aot::Shell::Fish,
        };
        let (hidden, name) = (hidden(&command), command.get_name().to_owned());
        let mut bytes = Vec::new();
        aot::generate(shell, &mut command, &name, &mut bytes);
        let script = String::from_utf8_lossy(&bytes);
        let lines = script.lines().filter(|line| !hidden.iter().any(|name| offers(line, name)));
        let script: String = lines.map(|line| format!("{line}\n")).collect();
        let script = hidden.iter().fold(script, |script, name| script.replace(&format!(" --{name} "), " "));
        // The generator spells a program with a hyphen in two ways, and bash then finds no command below it.
        let [wrong, right] =
            ["__subcmd__", "__"].map(|hyphen| format!("{}__subcmd__", name.replace('-', hyphen)));
        script.replace(&wrong, &right)
    }
}

/// What is taken only to be refused, or for our own use: the generator would offer it (O-62).
fn hidden(command: &clap::Command) -> Vec<String> {
    let below = command.get_subcommands().flat_map(hidden);
    let own = command.get_arguments().filter(|argument| argument.is_hide_set());
    own.map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned())
        .chain(below)
        .collect()
}

/// Whether a line of a script for zsh or fish is there to offer this and nothing else.
fn offers(line: &str, name: &str) -> bool {
    let zsh = [format!("'--{name}="), format!("'--{name}["), format!("'::{name} -- ")];
    zsh.iter().any(|start| line.starts_with(start)) || line.contains(&format!(" -l {name} "))
}

/// Refuses words among which is a token: it is printed nowhere (N-02, O-62).
pub fn without_tokens(mut words: impl Iterator<Item = OsString>) -> Result<(), Refusal> {
    if words.any(|word| token::is_in(&word.to_string_lossy())) { Err(token_as_an_argument()) } else { Ok(()) }
}

/// A token was typed where only the name of its file may be.
pub fn token_as_an_argument() -> Refusal {
    Refusal::new(
        "token_in_arguments",
        "a token was given as an argument",
        "arguments can be read by everybody on this machine while the program runs, and stay in the shell's history; \
         nothing was done",
        "put it into a file of yours with mode 0600 on its machine, and run there \
         `tenure-host enrol --token-file FILE` (`-` is standard input); if others may have seen it, run \
         `tenure reinvite NODE --revoke-now`",
    )
}

/// What is wrong with these words, which `command` does not parse; none where help or the version was asked for, which
/// are printed as they are. Nothing was done yet, whatever it is.
pub fn mistake(
    error: &clap::Error,
    mut command: clap::Command,
    words: impl IntoIterator<Item = OsString>,
) -> Option<Refusal> {
    command.build();
    let mut words = words.into_iter().skip(1);
    let meant =
        words.find_map(|word| command.find_subcommand(&word).map(|meant| meant.get_name().to_owned()));
    let said = Said { error, command: &command, meant: meant.as_deref() };
    let refusal = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let happened = format!("`{}` was given no command", command.get_name());
            let remedy = format!("give one of {}; {}", said.commands(), said.help());
            mistyped("missing_command", happened, remedy)
        }
        ErrorKind::InvalidSubcommand => {
            let happened = said.unknown("command", ContextKind::InvalidSubcommand);
            mistyped("unknown_command", happened, said.remedy())
        }
        ErrorKind::UnknownArgument => {
            let happened = said.unknown("argument", ContextKind::InvalidArg);
            mistyped("unknown_argument", happened, said.remedy())
        }
        ErrorKind::MissingRequiredArgument => {
            let happened = format!("{} is missing", said.one(ContextKind::InvalidArg));
            mistyped("missing_argument", happened, said.remedy())
        }
        ErrorKind::ArgumentConflict => mistyped("arguments_conflict", said.conflict(), said.remedy()),
        _ => mistyped("bad_argument", said.value(), said.remedy()),
    };
    Some(refusal)
}

fn mistyped(code: &str, happened: String, remedy: String) -> Refusal {
    Refusal::new(code, happened, "the line is not understood, so nothing was done", remedy)
}

/// What the parser found, in words.
struct Said<'a> {
    error: &'a clap::Error,
    command: &'a clap::Command,
    /// The command that was typed, by its name.
    meant: Option<&'a str>,
}

impl Said<'_> {
    /// What it says of this, each part made harmless: these are words somebody typed.
    fn all(&self, kind: ContextKind) -> Vec<String> {
        let texts = match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
            Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        texts.iter().map(|text| shown(text, MOST)).collect()
    }

    fn one(&self, kind: ContextKind) -> String {
        self.each(kind, " and ")
    }

    fn each(&self, kind: ContextKind, between: &str) -> String {
        let all: Vec<String> = self.all(kind).iter().map(|text| format!("`{text}`")).collect();
        all.join(between)
    }

    fn unknown(&self, what: &str, kind: ContextKind) -> String {
        let near = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
        let near = near.map(|kind| self.each(kind, " or ")).into_iter().find(|near| !near.is_empty());
        let near = near.map(|near| format!("; did you mean {near}")).unwrap_or_default();
        format!("there is no {what} {} here{near}", self.one(kind))
    }

    fn conflict(&self) -> String {
        let (this, other) = (self.one(ContextKind::InvalidArg), self.one(ContextKind::PriorArg));
        if other.is_empty() || this == other {
            format!("{this} was given more than once")
        } else {
            format!("{this} and {other} contradict each other")
        }
    }

    /// What is wrong with the value of an argument.
    fn value(&self) -> String {
        let (argument, given) = (self.one(ContextKind::InvalidArg), self.all(ContextKind::InvalidValue));
        let possible = self.each(ContextKind::ValidValue, ", ");
        let why = match std::error::Error::source(self.error) {
            Some(why) => format!(": {}", shown(&why.to_string(), MOST)),
            None if possible.is_empty() => String::new(),
            None => format!("; it is one of {possible}"),
        };
        match given.first().map(String::as_str) {
            _ if argument.is_empty() => "a word of the line is no text".to_owned(),
            None => format!("{argument} has another number of values than it takes{why}"),
            Some("") => format!("{argument} needs a value{why}"),
            Some(given) => format!("`{given}` is no value for {argument}{why}"),
        }
    }

    fn commands(&self) -> String {
        let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<&str> = shown.map(clap::Command::get_name).filter(|name| *name != "help").collect();
        names.join(", ")
    }

    /// How it is typed: as the parser says, else as the command that was typed is.
    fn usage(&self) -> String {
        let said = self.all(ContextKind::Usage).into_iter().next();
        let meant = self.meant.and_then(|name| self.command.find_subcommand(name)).unwrap_or(self.command);
        let usage = said.unwrap_or_else(|| meant.clone().render_usage().to_string());
        let line = usage.lines().next().unwrap_or_default().trim();
        line.strip_prefix("Usage: ").unwrap_or(line).to_owned()
    }

    fn help(&self) -> String {
        let name = self.command.get_name();
        match self.meant {
            Some(meant) => format!("`{name} {meant} --help` says what each is"),
            None => format!("`{name} --help` says what each is"),
        }
    }

    fn remedy(&self) -> String {
        format!("type it as `{}`; {}", self.usage(), self.help())
    }
}

/// What is typed into one word is quoted as far as this.
const MOST: usize = 200;

#[cfg(test)]
mod tests;
