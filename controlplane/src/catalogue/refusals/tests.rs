use super::*;

fn node() -> NodeId {
    NodeId::new("edge-1").unwrap()
}

#[test]
fn what_only_a_fault_or_a_race_brings_about_has_its_own_code_and_says_what_was_declared() {
    for (refusal, code, remedy) in [
        (NotDeclared::Overtaken(node()).into(), "overtaken", "tenure declare DIR --plan"),
        (CatalogueRefusal::LastUnreadable(node()), "last_unreadable", "journalctl -u tenure-control"),
        (CatalogueRefusal::Fault, "fault", "journalctl -u tenure-control"),
        (CatalogueRefusal::Crowded, "busy", "declare again"),
    ] {
        let refusal = refusal.refusal();
        assert_eq!(refusal.code, code);
        assert!(refusal.remedy.contains(remedy), "{refusal:?}");
        assert_eq!(refusal.means, "nothing was declared for any node");
    }
}

#[test]
fn a_piece_that_finds_no_room_is_told_when_there_will_be_some() {
    let refusal = CatalogueRefusal::NotPut(NotPut::NoRoom(Digest::of(b"x"))).refusal();
    assert_eq!(refusal.code, "no_room");
    assert!(refusal.remedy.contains("in an hour"), "{refusal:?}");
}

#[test]
fn what_names_a_node_that_lost_its_standing_is_said_to_name_a_retired_one() {
    assert_eq!(CatalogueRefusal::from(NotDeclared::NoStanding(node())).code(), "retired");
    let missing = NotDeclared::ContentMissing(node(), Digest::of(b"x"));
    assert_eq!(CatalogueRefusal::from(missing).code(), "no_content");
}
