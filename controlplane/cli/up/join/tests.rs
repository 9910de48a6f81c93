use std::sync::{Arc, Mutex};

use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, FencingToken, Generation, Millis, StoreId};
use tenure_protocol::machine::MachineState;
use tenure_protocol::rescue::{EnrolledAs, Identity, LinkStatus};
use tenure_protocol::secret::Secret;

use super::*;
use crate::caller::tests::{answered_by, asked, ok};

const HERE: ControlPlaneId = ControlPlaneId::from_bytes([1; 16]);

fn sandbox() -> Newcomer {
    Newcomer::of_a_sandbox().unwrap()
}

fn edge() -> Newcomer {
    Newcomer::this_machine("Edge_1.lan\n").unwrap()
}

type Asked = Arc<Mutex<Vec<String>>>;

/// A control plane that knows the node `sandbox` or not, and remembers what it was asked.
fn control(knows: bool, log: &Asked) -> Caller {
    let log = Arc::clone(log);
    answered_by(move |request| {
        log.lock().unwrap().push(request.kind.clone());
        let invited = Invited {
            node: NodeId::new("sandbox").unwrap(),
            token: Secret::new("t".to_owned()),
            expires: Millis(0),
            handed_back: false,
        };
        match request.kind.as_str() {
            "control.status" => ok::<operator::Status>(operator::StatusIs {
                control_plane_id: HERE,
                epoch: Epoch { number: 1, id: EpochId::from_bytes([0; 16]) },
                version: "1".to_owned(),
                advertise: vec!["127.0.0.1:7443".to_owned()],
                nodes: 0,
            }),
            "node" if knows => Err(Refusal::new("unasked", "", "", "")),
            "node" => Err(Refusal::new(UNKNOWN, "there is no node sandbox", "", "")),
            "invite" => {
                let invite = asked::<Invite>(request).unwrap();
                let newcomer = Newcomer { node: invite.node.unwrap(), mode: invite.mode };
                assert!([sandbox(), edge()].contains(&newcomer), "{newcomer:?}");
                ok::<Invite>(invited)
            }
            "reinvite" => ok::<Reinvite>(invited),
            other => panic!("{other}"),
        }
    })
}

fn host(identity: Option<ControlPlaneId>, log: &Asked) -> Caller {
    host_that_dials("127.0.0.1:7443", identity, log)
}

fn host_that_dials(address: &str, identity: Option<ControlPlaneId>, log: &Asked) -> Caller {
    let log = Arc::clone(log);
    let identity = identity.map(|control_plane_id| Identity {
        node: NodeId::new("mine").unwrap(),
        control_plane_id,
        addresses: vec![address.to_owned()],
        generation: Generation(1),
        fencing: FencingToken(1),
        mode: Mode::Converged,
    });
    answered_by(move |request| {
        log.lock().unwrap().push(request.kind.clone());
        match asked::<Enrol>(request) {
            Some(enrol) => {
                assert_eq!(enrol.token.reveal(), "t");
                ok::<Enrol>(EnrolledAs {
                    node: NodeId::new("sandbox").unwrap(),
                    mode: Mode::Converged,
                    briefing: vec![],
                    already: false,
                })
            }
            None => ok::<rescue::Status>(rescue::StatusIs {
                machine_state: MachineState::Hosted,
                version: "1".to_owned(),
                store_id: StoreId::from_bytes([0; 16]),
                identity: identity.clone(),
                link: LinkStatus::None,
                revision: None,
                last: None,
                read_whole: None,
                owned: 0,
                spooled: 0,
                store_note: None,
                credential: None,
                sandbox: true,
            }),
        }
    })
}

#[tokio::test]
async fn a_machine_without_an_identity_joins_on_the_ordinary_path() {
    let log = Asked::default();
    let joined = join(&control(false, &log), &host(None, &log), &sandbox()).await.unwrap();
    assert_eq!((joined.node.as_str(), joined.how), ("sandbox", How::Anew));
    assert_eq!(*log.lock().unwrap(), ["control.status", "host.status", "node", "invite", "host.enrol"]);
}

#[tokio::test]
async fn a_machine_that_has_joined_is_left_as_it_is() {
    let log = Asked::default();
    let joined = join(&control(true, &log), &host(Some(HERE), &log), &sandbox()).await.unwrap();
    assert_eq!((joined.node.as_str(), joined.how), ("mine", How::Before));
    assert_eq!(*log.lock().unwrap(), ["control.status", "host.status"]);
}

#[tokio::test]
async fn a_machine_whose_control_plane_listens_elsewhere_now_is_told_so_by_a_fresh_token() {
    let log = Asked::default();
    let host = host_that_dials("127.0.0.1:9", Some(HERE), &log);
    assert_eq!(join(&control(true, &log), &host, &sandbox()).await.unwrap().how, How::ElsewhereNow);
    assert_eq!(*log.lock().unwrap(), ["control.status", "host.status", "reinvite", "host.enrol"]);
}

#[tokio::test]
async fn a_machine_of_another_control_plane_is_refused_and_not_taken_over() {
    let log = Asked::default();
    let other = ControlPlaneId::from_bytes([2; 16]);
    let trouble = join(&control(true, &log), &host(Some(other), &log), &sandbox()).await.unwrap_err();
    assert_eq!(trouble.refusal.code, "foreign_control_plane");
    assert_eq!(*log.lock().unwrap(), ["control.status", "host.status"]);
}

#[tokio::test]
async fn what_the_control_plane_refuses_of_the_node_is_passed_on() {
    let log = Asked::default();
    let trouble = join(&control(true, &log), &host(None, &log), &sandbox()).await.unwrap_err();
    assert_eq!(trouble.refusal.code, "unasked");
}

// rule: A-01
#[tokio::test]
async fn a_real_machine_joins_adopted_under_its_own_name() {
    assert_eq!(
        (edge().node.as_str(), edge().mode, sandbox().mode),
        ("edge-1.lan", Mode::Adopted, Mode::Converged)
    );
    let log = Asked::default();
    join(&control(false, &log), &host(None, &log), &edge()).await.unwrap();
    assert!(log.lock().unwrap().contains(&"invite".to_owned()));
}

#[test]
fn every_machine_has_a_name_that_a_node_may_have() {
    for (host_name, node) in [
        ("web01", "web01"),
        ("-_Über", "ber"),
        ("", "machine"),
        ("(none)", "none"),
        (&"x".repeat(64), &"x".repeat(63)),
    ] {
        assert_eq!(Newcomer::this_machine(host_name).unwrap().node.as_str(), node);
    }
}
