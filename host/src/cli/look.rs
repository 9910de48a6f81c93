//! `tenure-host status` and `tenure-host owned`: from the daemon where one answers, else from the store.

use std::time::Duration;

use tenure_actors::clock;
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::rescue::{Owned, OwnedLine, Status, StatusIs};

use super::ask::Host;
use super::{Done, print, runtime, show};
use crate::ground::Ground;
use crate::reconcile::unreadable;
use crate::status as read;
use crate::store::{Opened, Store};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const PAGE: u32 = 1_000;

pub(super) fn status(ground: &Ground, json: bool) -> Result<Done, Refusal> {
    let (status, runs) = runtime()?.block_on(async {
        match Host::find(ground).await? {
            Some(host) => Ok((host.ask(&Status {}, ANSWER_WITHIN).await?, true)),
            None => Ok::<(StatusIs, bool), Refusal>((from_store(ground)?, false)),
        }
    })?;
    print(json, &status, || show::status(&status, runs));
    Ok(Done::Well)
}

fn from_store(ground: &Ground) -> Result<StatusIs, Refusal> {
    let Opened { store, note } = open(ground)?;
    let status = read::read(&store, None, note, ground.is_sandbox()).map_err(unreadable);
    store.close();
    status
}

pub(super) fn owned(ground: &Ground, json: bool) -> Result<Done, Refusal> {
    let owned = runtime()?.block_on(async {
        match Host::find(ground).await? {
            Some(host) => asked(&host).await,
            None => {
                let store = open(ground)?.store;
                let owned = pages(&store);
                store.close();
                owned
            }
        }
    })?;
    print(json, &owned, || show::owned(&owned));
    Ok(Done::Well)
}

async fn asked(host: &Host) -> Result<Vec<OwnedLine>, Refusal> {
    let mut all: Vec<OwnedLine> = Vec::new();
    loop {
        let after = all.last().map(|line| line.key.clone());
        let page = host.ask(&Owned { after }, ANSWER_WITHIN).await?;
        let more = page.more && !page.owned.is_empty();
        all.extend(page.owned);
        if !more {
            return Ok(all);
        }
    }
}

fn pages(store: &Store) -> Result<Vec<OwnedLine>, Refusal> {
    let mut all: Vec<OwnedLine> = Vec::new();
    loop {
        let page = store.owned_page(all.last().map(|line| line.key.as_str()), PAGE).map_err(unreadable)?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// The store of a host that does not run.
pub(super) fn open(ground: &Ground) -> Result<Opened, Refusal> {
    Store::open(ground, false, clock::system().now()).map_err(|error| error.refusal())
}
