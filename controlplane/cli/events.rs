//! `tenure events`: what happened lately, oldest first.

use serde_json::json;
use tenure_protocol::event::Listed;
use tenure_protocol::operator::Events;
use tenure_protocol::text::shown;

use crate::caller::Caller;
use crate::command;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;
use crate::words::{NONE, moment};

pub(crate) async fn run(
    order: &command::Events,
    control: &Caller,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let page = control.ask(&Events { after: None, node: order.node.clone() }).await?;
    if screen.is_json() {
        screen.print_json(&json!(page.events))?;
    } else if page.events.is_empty() {
        screen.say("nothing has been told yet");
    } else {
        let table =
            screen.table(&["RECEIVED", "NODE", "EVENT", "WHAT"], page.events.iter().map(row).collect());
        screen.print(&table)?;
    }
    Ok(Exit::Done)
}

fn row(event: &Listed) -> Vec<String> {
    let text = shown(&event.text, 500);
    let what = match &event.key {
        Some(key) => format!("{}: {text}", shown(key, 300)),
        None => text,
    };
    vec![
        moment(event.received_at),
        event.node.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string),
        shown(&event.kind, 64),
        what,
    ]
}

#[cfg(test)]
mod tests;
