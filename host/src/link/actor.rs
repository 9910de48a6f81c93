//! The link's mailbox: it starts attempts and enrolments beside itself, hears how they end, and arms the next dial.
//! What follows from what is in [`state`](super::state).

use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::timer::{Timer, after};
use tenure_actors::work::{Panicked, Work, work};
use tenure_actors::{Address, AskError, Child, Reply, answer};
use tenure_protocol::id::Millis;
use tenure_protocol::machine::MachineState;
use tenure_protocol::refusal::{Explain as _, Refusal};
use tenure_protocol::rescue::{EnrolledAs, LinkStatus};
use tenure_protocol::token::Presented;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Around;
use super::attempt::{News, attempt};
use super::dial::NAMES_FAIL;
use super::redial::Redial;
use super::state::{Farewell, Standing, held};
use crate::enrol::{self, EnrolError, Place};
use crate::identity::StoredIdentity;

/// Speaks to the link.
#[derive(Debug, Clone)]
pub struct Link {
    address: Address<Msg>,
    views: watch::Sender<LinkView>,
}

/// How the link is, and what the machine therefore is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkView {
    /// The link.
    pub link: LinkStatus,
    /// The machine's own view of itself.
    pub machine: MachineState,
}

impl Link {
    /// One that nobody stands behind yet.
    pub fn new() -> Self {
        let nobody = LinkView { link: LinkStatus::None, machine: MachineState::Hosted };
        Self { address: Address::vacant(), views: watch::Sender::new(nobody) }
    }

    /// How the link is, and when that changes.
    pub fn watch(&self) -> watch::Receiver<LinkView> {
        self.views.subscribe()
    }

    /// How the link is.
    pub async fn view(&self) -> Result<LinkView, AskError> {
        self.address.ask(Duration::from_secs(5), Msg::View).await
    }

    /// Redeems a token. The link then belongs to the new enrolment; a refusal costs the standing one nothing.
    pub async fn enrol(&self, token: Presented) -> Result<Result<EnrolledAs, Refusal>, AskError> {
        // Every address is dialled to its end, and then two answers are waited for.
        self.address.ask(Duration::from_secs(180), |reply| Msg::Enrol(token, reply)).await
    }

    /// The actor, for the tree.
    pub fn child(&self, around: Around) -> Child {
        let views = self.views.clone();
        Child::new("link", self.address.clone(), move || (Linking, (around.clone(), views.clone())))
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

struct Linking;

enum Msg {
    View(Reply<LinkView>),
    Enrol(Presented, Reply<Result<EnrolledAs, Refusal>>),
    Redeemed(Result<Result<EnrolledAs, EnrolError>, Panicked>),
    DialDue,
    Opened(u64, News),
    Ended(u64, Result<Farewell, Panicked>),
}

struct Linked {
    around: Around,
    views: watch::Sender<LinkView>,
    standing: Standing,
    redial: Redial,
    /// Names the attempt that counts; what an earlier one still says is passed over.
    number: u64,
    session: Option<Session>,
    names_fail_since: Option<Millis>,
    asker: Option<Reply<Result<EnrolledAs, Refusal>>>,
    _attempt: Option<Work>,
    _due: Option<Timer>,
    _enrolling: Option<Work>,
}

/// The open session.
struct Session {
    address: String,
    opened: Instant,
    beat: Duration,
}

impl Actor for Linking {
    type Msg = Msg;
    type State = Linked;
    type Arguments = (Around, watch::Sender<LinkView>);

    async fn pre_start(
        &self,
        me: ActorRef<Msg>,
        (around, views): Self::Arguments,
    ) -> Result<Linked, ActorProcessingErr> {
        let identity = around.store.off(|store| store.identity::<StoredIdentity>()).await;
        // A store that does not answer for the moment must not end the holding: the dial asks it again.
        let is_enrolled = identity.map_or_else(
            |error| {
                tracing::warn!(%error, "identity not read; the dial tries again");
                true
            },
            |identity| identity.is_some(),
        );
        if is_enrolled {
            drop(me.send_message(Msg::DialDue));
        }
        let linked = Linked {
            standing: Standing::at_start(is_enrolled, around.now()),
            around,
            views,
            redial: Redial::new(),
            number: 0,
            session: None,
            names_fail_since: None,
            asker: None,
            _attempt: None,
            _due: None,
            _enrolling: None,
        };
        linked.show();
        Ok(linked)
    }

    async fn handle(&self, me: ActorRef<Msg>, msg: Msg, this: &mut Linked) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::View(reply) => answer(reply, this.view()),
            Msg::Enrol(token, reply) => this.enrol(&me, token, reply),
            Msg::Redeemed(done) => this.redeemed(&me, done),
            Msg::DialDue => this.dial(&me),
            Msg::Opened(number, news) if number == this.number => this.opened(news),
            Msg::Ended(number, end) if number == this.number => this.ended(&me, end),
            // Of an attempt that was given up for a new enrolment.
            Msg::Opened(..) | Msg::Ended(..) => {}
        }
        this.show();
        Ok(())
    }
}

impl Linked {
    fn view(&self) -> LinkView {
        LinkView { link: self.standing.status(), machine: self.standing.machine() }
    }

    fn show(&self) {
        let view = self.view();
        self.views.send_if_modified(|shown| {
            let news = *shown != view;
            *shown = view;
            news
        });
    }

    fn dial(&mut self, me: &ActorRef<Msg>) {
        self.number += 1;
        let (number, teller) = (self.number, me.clone());
        let opened = move |news| drop(teller.send_message(Msg::Opened(number, news)));
        let job = attempt(self.around.clone(), opened);
        self._due = None;
        self._attempt = Some(work(me, job, move |end| Msg::Ended(number, end)));
    }

    fn opened(&mut self, news: News) {
        let now = self.around.now();
        let note = if news.remembered {
            let since = *self.names_fail_since.get_or_insert(now);
            Some(format!("reached by remembered address; DNS failing since {}", written(since)))
        } else {
            self.names_fail_since = None;
            None
        };
        tracing::info!(address = %news.address, note, "link up");
        let address = news.address.clone();
        self.session = Some(Session { address, opened: Instant::now(), beat: news.beat });
        if let Err(illegal) = self.standing.opened(news.address, note, now) {
            tracing::error!(%illegal, "link opened out of turn");
        }
    }

    fn ended(&mut self, me: &ActorRef<Msg>, end: Result<Farewell, Panicked>) {
        let end = end.unwrap_or_else(|panicked| Farewell::Lost(broke_off(&panicked)));
        let session = self.session.take();
        if session.as_ref().is_some_and(|session| held(session.opened.elapsed(), session.beat)) {
            self.redial.reset();
        }
        let (now, reason) = (self.around.now(), end.reason());
        if reason.is(NAMES_FAIL) {
            self.names_fail_since.get_or_insert(now);
        }
        let (pause, news) = self.standing.ended(&end, now);
        let wait = self.redial.wait(pause);
        if news {
            let address = session.map(|session| session.address);
            tracing::warn!(address, reason = %reason.code, why = reason.happened, "link down");
        } else {
            tracing::debug!(reason = %reason.code, ?wait, "link still down");
        }
        self._attempt = None;
        self._due = Some(after(me, wait, || Msg::DialDue));
    }

    fn enrol(&mut self, me: &ActorRef<Msg>, token: Presented, reply: Reply<Result<EnrolledAs, Refusal>>) {
        if self.asker.is_some() {
            return answer(reply, Err(busy()));
        }
        self.asker = Some(reply);
        let place = Place::of(&self.around);
        let job = async move { enrol::enrol(&place, &token).await };
        self._enrolling = Some(work(me, job, Msg::Redeemed));
    }

    fn redeemed(&mut self, me: &ActorRef<Msg>, done: Result<Result<EnrolledAs, EnrolError>, Panicked>) {
        let result = match done {
            Ok(result) => result.map_err(|error| error.refusal()),
            Err(panicked) => Err(broke_off(&panicked)),
        };
        match &result {
            // The same token again: nothing was redeemed, and the session stands on it.
            Ok(enrolled) if enrolled.already && self.session.is_some() => {}
            Ok(_) => {
                if let Err(illegal) = self.standing.enrolled(self.around.now()) {
                    tracing::error!(%illegal, "enrolled out of turn");
                }
                self.session = None;
                self.redial.reset();
                self.dial(me);
            }
            Err(refusal) => tracing::warn!(code = %refusal.code, why = refusal.happened, "not enrolled"),
        }
        if let Some(reply) = self.asker.take() {
            answer(reply, result);
        }
    }
}

/// A moment for people; the bare number where a calendar has none.
fn written(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at.0 / 1000 * 1000)
        .map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

fn broke_off(panicked: &Panicked) -> Refusal {
    Refusal::new(
        "link_broke_off",
        format!("the link broke off: {panicked}"),
        "this is a fault of the host; the machine goes on holding what it was told",
        "report it with what `journalctl -u tenure-host` shows; the host dials again by itself",
    )
}

fn busy() -> Refusal {
    Refusal::new(
        "enrolment_running",
        "another enrolment of this machine is running",
        "one token at a time: which one holds is decided by the control plane's answer",
        "wait for it to end (at most three minutes), then look with `tenure-host status`",
    )
}
