use tenure_protocol::id::Millis;

use super::*;
use crate::store::Store as _;
use crate::store::memory::Memory;
use crate::store::tests::{declaration, name, new};

#[test]
fn what_is_said_when_too_many_folders_wait_says_that_nothing_was_declared() {
    let refusal = CatalogueRefusal::Crowded.refusal();
    assert!(refusal.is("busy") && refusal.remedy.contains("declare again"), "{refusal:?}");
    assert_eq!(refusal.means, "nothing was declared for any node");
}

#[tokio::test]
async fn a_declaration_that_another_was_written_before_is_refused_and_says_so() {
    let store = Memory::default();
    store.invite(new("a"), Millis(1)).await.unwrap();
    store.declare(vec![declaration("a", 0, vec![])], vec![], Millis(2)).await.unwrap().unwrap();
    let late = store.declare(vec![declaration("a", 0, vec![])], vec![], Millis(3)).await.unwrap();
    let refusal = CatalogueRefusal::from(late.unwrap_err()).refusal();
    assert!(refusal.is("overtaken") && refusal.happened.contains("node a"), "{refusal:?}");
    assert!(refusal.remedy.contains("tenure declare DIR --plan"), "{refusal:?}");
}

fn node() -> NodeId {
    name("edge-1")
}

#[test]
fn what_names_a_node_that_lost_its_standing_is_said_to_name_a_retired_one() {
    assert_eq!(CatalogueRefusal::from(NotDeclared::NoStanding(node())).code(), "retired");
    let missing = NotDeclared::ContentMissing(node(), Digest::of(b"x"));
    assert_eq!(CatalogueRefusal::from(missing).code(), "no_content");
}
