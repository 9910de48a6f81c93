//! `tenure retire NODE`: its standing is withdrawn, for good.

use serde_json::json;
use tenure_protocol::operator::Retire;

use crate::caller::Caller;
use crate::command;
use crate::ending::{Exit, Trouble};
use crate::screen::Screen;

pub(crate) async fn run(
    order: &command::Node,
    control: &Caller,
    screen: &mut Screen,
) -> Result<Exit, Trouble> {
    let node = &order.node;
    let retired = control.ask(&Retire { node: node.clone() }).await?;
    if screen.is_json() {
        screen.print_json(&json!({ "node": node, "retired": true, "already": retired.already }))?;
    } else if retired.already {
        screen.print(&format!("{node} was retired before; nothing changed\n"))?;
    } else {
        screen.print(&format!(
            "{node} is retired: it may open no session and is assigned nothing any more\n\
             its machine was not touched and keeps what it has\n"
        ))?;
    }
    Ok(Exit::Done)
}
