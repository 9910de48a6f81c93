use tenure_protocol::id::{Digest, Epoch, EpochId, Generation, Millis, Rental};
use tenure_protocol::machine::Mode;

use super::*;
use crate::manifest::tests::identity;

fn invitation(node: &str, control_plane: u8) -> Invitation {
    Invitation {
        v: 1,
        addresses: vec!["control.lan:7443".to_owned(), "192.0.2.1:7443".to_owned()],
        ca: Digest::of(b"ca"),
        control_plane_id: ControlPlaneId::from_bytes([control_plane; 16]),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([1; 16]) },
        node: NodeId::new(node).unwrap(),
        rental: Rental::new("own").unwrap(),
        generation: Generation(1),
        mode: Mode::Adopted,
        expires: Millis(0),
        counter: 1,
        key_id: 1,
    }
}

fn found(change: impl FnOnce(&mut NodeManifest)) -> Finding {
    let mut manifest = crate::manifest::of(&identity("edge-1"), &Finding::Absent);
    change(&mut manifest);
    Finding::Found(Box::new(manifest))
}

fn code(finding: &Finding, invitation: &Invitation) -> &'static str {
    recognise(finding, None, invitation).map_or_else(|stranger| stranger.code(), |()| "proceed")
}

// rule: I-04
// rule: I-05
// rule: I-06
#[test]
fn what_the_machine_carries_decides_before_the_token_is_spent() {
    let ours = invitation("edge-1", 7);
    assert_eq!(code(&Finding::Absent, &ours), "proceed");
    assert_eq!(code(&found(|_| {}), &ours), "proceed");
    assert_eq!(
        code(&found(|m| m.control_plane_id = None), &ours),
        "proceed",
        "the same address is the same owner"
    );
    assert_eq!(code(&found(|m| m.node = NodeId::new("edge-2").unwrap()), &ours), "refuse_other_node");
    assert_eq!(code(&found(|_| {}), &invitation("edge-1", 8)), "refuse_foreign_control_plane");
    let nobodys = found(|m| {
        m.control_plane_id = None;
        m.control_plane_url.clear();
    });
    assert_eq!(code(&nobodys, &ours), "refuse_foreign_control_plane");
    assert_eq!(code(&Finding::Unreadable(Unreadable("x".into())), &ours), "refuse_unreadable_manifest");
    assert_eq!(code(&Finding::CouldNotLook("denied".into()), &ours), "could_not_look");
}

// rule: I-09
#[test]
fn a_foreign_machine_is_called_foreign_even_where_the_node_differs_too() {
    let finding = found(|m| m.node = NodeId::new("edge-2").unwrap());
    assert_eq!(code(&finding, &invitation("edge-1", 8)), "refuse_foreign_control_plane");
}

#[test]
fn a_removed_manifest_does_not_make_the_store_forget_whose_machine_it_is() {
    let stored = identity("edge-1");
    let ask = |invitation| recognise(&Finding::Absent, Some(&stored), &invitation).map_err(|s| s.code());
    assert_eq!(ask(invitation("edge-1", 7)), Ok(()));
    assert_eq!(ask(invitation("edge-2", 7)), Err("refuse_other_node"));
    assert_eq!(ask(invitation("edge-1", 8)), Err("refuse_foreign_control_plane"));
}

#[test]
fn every_refusal_says_what_happened_what_it_means_and_what_to_do() {
    let refusal =
        recognise(&found(|m| m.node = NodeId::new("edge-2").unwrap()), None, &invitation("edge-1", 7))
            .unwrap_err()
            .refusal();
    assert_eq!(refusal.happened, "this machine is node edge-2, and the token is for node edge-1");
    assert!(refusal.remedy.contains("tenure reinvite edge-2"), "{}", refusal.remedy);
}
