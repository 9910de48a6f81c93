//! A session between the moment in which its node has it and the moment in which its actor can be reached.

use std::path::Path;

use tenure_actors::Supervisor;
use tenure_actors::clock::{ManualClock, Moment};
use tenure_actors::directory::Directory;
use tenure_actors::ractor::{Actor, ActorProcessingErr, ActorRef};
use tenure_actors::supervisor::Limits;
use tenure_protocol::id::{ControlPlaneId, Digest, Epoch, EpochId, Revision, RevisionNumber};
use tokio::sync::mpsc;
use tokio::time::{Duration, timeout};

use super::current::Current;
use super::*;
use crate::config::Config;
use crate::ground::Ground;
use crate::keys;
use crate::reconcile::Reconcile;
use crate::store::Founding;
use crate::store::memory::Memory;

/// The clock is paused: all that is under way is done before any of it passes.
const QUIET: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(60);

fn push(number: u64) -> Push {
    let epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
    let revision = Revision { epoch, number: RevisionNumber(number) };
    Push { revision, sha256: Digest::of(&number.to_be_bytes()), bytes: 1, resources: 1 }
}

pub(crate) fn plane() -> Arc<Plane> {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(folder.path());
    ground.create().unwrap();
    keys::make(&ground).unwrap();
    let epoch = Epoch { number: 1, id: EpochId::from_bytes([1; 16]) };
    Arc::new(Plane {
        founding: Founding { control_plane_id: ControlPlaneId::random(), epoch },
        keys: keys::load(&ground).unwrap(),
        store: Arc::new(Memory::default()),
        clock: ManualClock::at(Moment::from_millis(1)).shared(),
        config: Config::read(Path::new("/nonexistent/control.toml"), None, &[]).unwrap(),
        presence: crate::presence::Presence::default(),
        nodes: Directory::new(),
        homes: crate::fleet::homes::Homes::vacant(),
        fleet: crate::fleet::Fleet::vacant(),
        catalogue: crate::catalogue::actor::Catalogue::vacant(),
        contacts: crate::contacts::Contacts::vacant(),
        losses: crate::losses::Losses::vacant(),
        offering: crate::reconcile::foresee::Turns::default(),
    })
}

/// Stands in for the actor of a session, and hands on what that is told to push.
struct Listening;

impl Actor for Listening {
    type Msg = Msg;
    type State = mpsc::UnboundedSender<Push>;
    type Arguments = mpsc::UnboundedSender<Push>;

    async fn pre_start(
        &self,
        _: ActorRef<Msg>,
        pushes: mpsc::UnboundedSender<Push>,
    ) -> Result<mpsc::UnboundedSender<Push>, ActorProcessingErr> {
        Ok(pushes)
    }

    async fn handle(
        &self,
        _: ActorRef<Msg>,
        msg: Msg,
        pushes: &mut mpsc::UnboundedSender<Push>,
    ) -> Result<(), ActorProcessingErr> {
        if let Msg::Push(push) = msg {
            pushes.send(push)?;
        }
        Ok(())
    }
}

/// A reconcile loop that was told of a session whose actor is still to come, and then that revision 1 is declared.
struct Early {
    current: Current,
    session: Session,
    reconcile: Reconcile,
    loops: Supervisor,
}

impl Early {
    async fn new() -> Self {
        let node = NodeId::new("edge-1").unwrap();
        let session = Session::vacant(SessionId::random(), StoreId::random(), None, true);
        let (current, reconcile) = (Current::default(), Reconcile::vacant());
        let child = reconcile.child(&plane(), &node, &current);
        let loops = Supervisor::start("loops", Limits::default(), vec![child]).await.unwrap();
        current.replace(Some(session.clone()));
        reconcile.attach(&session);
        reconcile.declared(push(1));
        tokio::time::sleep(QUIET).await;
        Self { current, session, reconcile, loops }
    }

    /// The session's actor can be reached from now on; what it is told to push.
    async fn bound(&self) -> mpsc::UnboundedReceiver<Push> {
        let (pushes, pushed) = mpsc::unbounded_channel();
        let (actor, _) = Actor::spawn(None, Listening, pushes).await.unwrap();
        self.session.address.fill(actor);
        pushed
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_before_a_session_can_be_reached_is_pushed_once_as_soon_as_it_can() {
    let early = Early::new().await;
    let mut pushed = early.bound().await;
    assert_eq!(timeout(Duration::from_secs(2), pushed.recv()).await, Ok(Some(push(1))));
    assert!(timeout(LONG, pushed.recv()).await.is_err(), "it was pushed twice before it was answered");
    early.loops.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_anew_before_a_session_can_be_reached_is_all_that_is_pushed() {
    let early = Early::new().await;
    early.reconcile.declared(push(2));
    tokio::time::sleep(QUIET).await;
    let mut pushed = early.bound().await;
    assert_eq!(timeout(Duration::from_secs(2), pushed.recv()).await, Ok(Some(push(2))));
    assert!(timeout(LONG, pushed.recv()).await.is_err(), "something older was pushed behind it");
    early.loops.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ended_before_it_could_be_reached_is_pushed_nothing() {
    let early = Early::new().await;
    // The loop may be between two lives when it is told of the end, and then does not hear of it.
    assert!(early.current.ended(early.session.id()));
    tokio::time::sleep(LONG).await;
    let mut pushed = early.bound().await;
    assert!(timeout(LONG, pushed.recv()).await.is_err(), "a session that ended is tried for ever");
    early.loops.stop().await;
}
