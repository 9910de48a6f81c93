//! `tenure invite` and `tenure reinvite`: the token goes out once, alone on stdout or into a new file that only its
//! owner can read; what to do with it stands on stderr. It is never an argument (case O-62).

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenure_protocol::id::Millis;
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::{Invite, Invited, Reinvite};
use tenure_protocol::refusal::Refusal;

use crate::command;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;
use crate::socket;
use crate::words::{quoted, until};

pub(crate) async fn invite(
    order: &command::Invite,
    named: Option<&Path>,
    screen: &mut Screen,
    now: Millis,
) -> Result<Exit, Trouble> {
    let control = socket::control_plane(named).await?;
    let place = order.out.as_deref().map(Place::reserve).transpose()?;
    let asked = Invite {
        node: order.node.clone(),
        rental: None,
        generation: None,
        mode: if order.adopted { Mode::Adopted } else { Mode::Converged },
        valid_ms: order.valid.map(millis),
        rejoin: order.rejoin.into(),
        clock_is_right: order.clock_is_right,
    };
    let invited = control.ask(&asked).await?;
    hand_out(&invited, place, screen, now)
}

pub(crate) async fn reinvite(
    order: &command::Reinvite,
    named: Option<&Path>,
    screen: &mut Screen,
    now: Millis,
) -> Result<Exit, Trouble> {
    let control = socket::control_plane(named).await?;
    let place = order.out.as_deref().map(Place::reserve).transpose()?;
    let asked = Reinvite {
        node: order.node.clone(),
        valid_ms: order.valid.map(millis),
        revoke_now: order.revoke_now,
        clock_is_right: order.clock_is_right,
    };
    let invited = control.ask(&asked).await?;
    hand_out(&invited, place, screen, now)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A new file for the token, taken before the token exists: a name that is in use costs no invitation. It goes again
/// unless the token came into it.
#[derive(Debug)]
pub(crate) struct Place {
    file: File,
    path: PathBuf,
    filled: bool,
}

impl Place {
    pub(crate) fn reserve(path: &Path) -> Result<Self, Trouble> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match file {
            Ok(file) => Ok(Self { file, path: path.to_path_buf(), filled: false }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Refusal::new(
                "file_exists",
                format!("{} is there already", path.display()),
                "a token is never written over something, nor through a link; none was made",
                "name a file that is not there yet, or remove this one",
            )
            .into()),
            Err(error) => Err(unwritable(path, &error)),
        }
    }

    fn fill(&mut self, invited: &Invited) -> std::io::Result<()> {
        self.file.write_all(invited.token.reveal().as_bytes())?;
        self.file.write_all(b"\n")?;
        self.file.sync_all()?;
        self.filled = true;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.filled {
            // An empty file that stays does no harm beyond the next attempt being refused by name.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Trouble {
    Refusal::new(
        "cannot_write",
        format!("{} cannot be written: {error}", path.display()),
        "no token was made",
        "name a file in a folder you may write",
    )
    .into()
}

pub(crate) fn hand_out(
    invited: &Invited,
    place: Option<Place>,
    screen: &mut Screen,
    now: Millis,
) -> Result<Exit, Trouble> {
    let Invited { node, token, expires, handed_back } = invited;
    let file = match place {
        Some(mut place) => {
            place.fill(invited).map_err(|error| lost(invited, &error))?;
            Some(place.path.display().to_string())
        }
        None => None,
    };
    if screen.is_json() {
        let mut said = json!({ "node": node, "expires": expires, "handed_back": handed_back });
        match &file {
            Some(file) => said["file"] = json!(file),
            None => said["token"] = json!(token.reveal()),
        }
        screen.print_json(&said)?;
    } else if file.is_none() {
        screen.print(&format!("{}\n", token.reveal()))?;
    }
    if file.is_none() && screen.is_closed() {
        return Err(lost(invited, &std::io::Error::from(ErrorKind::BrokenPipe)));
    }
    if !screen.is_json() {
        screen.say(&hint(invited, file.as_deref(), now));
    }
    Ok(Exit::Done)
}

fn lost(invited: &Invited, error: &std::io::Error) -> Trouble {
    Trouble::failed(Refusal::new(
        "token_not_written",
        format!("the token for {} could not be written: {error}", invited.node),
        "the node is reserved and its token is outstanding, but nobody has it",
        format!("run `tenure reinvite {}`: it hands the token out again", invited.node),
    ))
}

fn hint(invited: &Invited, file: Option<&str>, now: Millis) -> String {
    let Invited { node, expires, handed_back, .. } = invited;
    let what = match (file, handed_back) {
        (Some(file), _) => format!("the token for {node} is in {file}"),
        (None, true) => format!("this is the outstanding token for {node}, again"),
        (None, false) => format!("this is the token for {node}, shown once"),
    };
    let file = quoted(file.unwrap_or("FILE"));
    format!(
        "{what}; it can be redeemed once, and ends {}\n\
         whoever holds it can become {node}: bring it to the machine in a file, never as an argument\n\
         on the machine, as root:  tenure-host enrol --token-file {file}",
        until(*expires, now)
    )
}

#[cfg(test)]
mod tests;
