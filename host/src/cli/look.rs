//! `tenure-host status`, `tenure-host owned` and `tenure-host held`: from the daemon where one answers, else from the store.

use std::time::Duration;

use tenure_actors::clock;
use tenure_protocol::outcome::{Outcome, ResourceOutcome};
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::rescue::{Outcomes, Owned, OwnedLine, Status, StatusIs};
use tokio::time::{Instant, sleep};

use super::ask::Host;
use super::{Done, asking, print, show};
use crate::ground::Ground;
use crate::reconcile::unreadable;
use crate::status as read;
use crate::store::{Opened, Store};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const PAGE: u32 = 1_000;

pub(super) fn status(ground: &Ground, json: bool) -> Result<Done, Refusal> {
    let (stands, runs) = asking()?.block_on(async {
        match reach(ground).await? {
            Reached::Host(host) => {
                let status = host.ask(&Status {}, ANSWER_WITHIN).await?;
                Ok((Stands::of(status, outcomes_asked(&host).await?), true))
            }
            Reached::Store(opened) => Ok::<(Stands, bool), Refusal>((from_store(ground, opened)?, false)),
        }
    })?;
    print(json, &stands, || show::stands(&stands, runs));
    Ok(Done::Well)
}

/// The most resources that are named by a status.
const MOST_NAMED: usize = 200;

/// How this machine stands, with each resource that is not as declared: since when, in how many passes, and why.
#[derive(Debug, serde::Serialize)]
pub(super) struct Stands {
    #[serde(flatten)]
    pub(super) status: StatusIs,
    pub(super) not_as_declared: Vec<ResourceOutcome>,
}

impl Stands {
    fn of(status: StatusIs, mut outcomes: Vec<ResourceOutcome>) -> Self {
        // What is kept as found is listed by a command of its own.
        outcomes.retain(|line| !line.outcome.is_as_declared() && line.outcome != Outcome::Held);
        outcomes.truncate(MOST_NAMED);
        Self { status, not_as_declared: outcomes }
    }
}

fn from_store(ground: &Ground, Opened { store, note }: Opened) -> Result<Stands, Refusal> {
    let status = read::read(&store, ground, None, note).map_err(unreadable);
    let outcomes = store.outcomes_page(None, PAGE * 100).map_err(unreadable);
    store.close();
    Ok(Stands::of(status?, outcomes?))
}

pub(super) fn owned(ground: &Ground, json: bool) -> Result<Done, Refusal> {
    let owned = asking()?.block_on(async {
        match reach(ground).await? {
            Reached::Host(host) => asked(&host).await,
            Reached::Store(Opened { store, .. }) => {
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

pub(super) fn held(ground: &Ground, json: bool) -> Result<Done, Refusal> {
    let mut lines = asking()?.block_on(async {
        match reach(ground).await? {
            Reached::Host(host) => outcomes_asked(&host).await,
            Reached::Store(Opened { store, .. }) => {
                let outcomes = store.last_outcomes().map_err(unreadable);
                store.close();
                Ok::<_, Refusal>(outcomes?.into_values().map(|remembered| remembered.line).collect())
            }
        }
    })?;
    lines.retain(|line| line.outcome == Outcome::Held);
    lines.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    print(json, &lines, || show::held(&lines));
    Ok(Done::Well)
}

async fn outcomes_asked(host: &Host) -> Result<Vec<ResourceOutcome>, Refusal> {
    let mut all: Vec<ResourceOutcome> = Vec::new();
    loop {
        let after = all.last().map(|line| line.key.clone());
        let page = host.ask(&Outcomes { after }, ANSWER_WITHIN).await?;
        let more = page.more && !page.outcomes.is_empty();
        all.extend(page.outcomes);
        if !more {
            return Ok(all);
        }
    }
}

/// Who can say what is true here.
pub(super) enum Reached {
    /// The daemon.
    Host(Host),
    /// The store of one that does not run.
    Store(Opened),
}

/// The daemon where one answers, else the store. One that starts, or opens its store anew, holds the store for a moment
/// before it answers; that is waited for, but not long.
pub(super) async fn reach(ground: &Ground) -> Result<Reached, Refusal> {
    reach_or(ground, open).await
}

/// The same; `open` opens the store.
pub(super) async fn reach_or(
    ground: &Ground,
    open: impl Fn(&Ground) -> Result<Opened, Refusal>,
) -> Result<Reached, Refusal> {
    let deadline = Instant::now() + STARTS_WITHIN;
    loop {
        if let Some(host) = Host::find(ground).await? {
            return Ok(Reached::Host(host));
        }
        match open(ground) {
            Err(refusal) if refusal.is("store_locked") && Instant::now() < deadline => sleep(AGAIN).await,
            opened => return opened.map(Reached::Store),
        }
    }
}

const STARTS_WITHIN: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(50);

/// The store of a host that does not run.
pub(super) fn open(ground: &Ground) -> Result<Opened, Refusal> {
    Store::open(ground, false, clock::system().now()).map_err(|error| error.refusal())
}

/// The same for a pass, which reads what is stored while the store is checked.
pub(super) fn open_ahead(ground: &Ground) -> Result<Opened, Refusal> {
    Store::open_ahead(ground).map_err(|error| error.refusal())
}
