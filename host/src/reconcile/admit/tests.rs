use proptest::prelude::*;
use tenure_protocol::id::{EpochId, ModuleName, RevisionNumber};
use tenure_protocol::machine::Mode;
use tenure_protocol::resource::{DirectorySpec, Resource, Spec};

use super::*;

fn epoch(number: u64) -> Epoch {
    Epoch { number, id: EpochId::from_bytes([u8::try_from(number).unwrap(); 16]) }
}

fn standing() -> Standing {
    Standing {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(2),
        epoch: epoch(1),
    }
}

fn declaration(revision: u64, keys: &[&str]) -> Declaration {
    let entry = |path: &&str| {
        let spec = Spec::Directory(DirectorySpec { path: path.parse().unwrap(), present: None });
        let module = ModuleName::new("base").unwrap();
        Resource { key: spec.key(), module, needs: Vec::new(), spec }
    };
    let standing = standing();
    let header = Header {
        control_plane_id: standing.control_plane_id,
        node: standing.node,
        generation: standing.generation,
        epoch: standing.epoch,
        revision: RevisionNumber(revision),
        mode: Mode::Converged,
        taken: Vec::new(),
        allowed_removals: None,
        is_final: false,
    };
    let resources: Vec<Resource> = keys.iter().map(entry).collect();
    Declaration::parse(&Declaration::encode(&header, &resources).unwrap()).unwrap()
}

fn held(epoch_number: u64, number: u64) -> Held {
    let revision = Revision { epoch: epoch(epoch_number), number: RevisionNumber(number) };
    Held { revision, sha256: Digest::of(b"held") }
}

fn ask(declaration: &Declaration, held: Option<Held>, owned: &[String]) -> Result<Admitted, AdmitRefusal> {
    let sha256 = Digest::of(b"new");
    admit(Some(&standing()), held.as_ref(), declaration, sha256, owned.iter().map(String::as_str))
}

fn owned(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("directory:/srv/{number}")).collect()
}

// rule: S-11
#[test]
fn a_declaration_for_anybody_else_is_refused_by_name() {
    let mut other = declaration(1, &[]);
    other.header.control_plane_id = ControlPlaneId::from_bytes([9; 16]);
    assert_eq!(ask(&other, None, &[]).unwrap_err().code(), "other_control_plane");
    let mut other = declaration(1, &[]);
    other.header.node = NodeId::new("edge-2").unwrap();
    assert_eq!(ask(&other, None, &[]).unwrap_err().code(), "other_node");
    let mut other = declaration(1, &[]);
    other.header.generation = Generation(1);
    assert_eq!(ask(&other, None, &[]).unwrap_err().code(), "other_generation");
    let mut other = declaration(1, &[]);
    other.header.epoch = epoch(2);
    assert_eq!(ask(&other, None, &[]).unwrap_err().code(), "other_epoch");
    assert_eq!(ask(&declaration(1, &[]), None, &[]), Ok(Admitted::New));
}

// rule: X-6
// case: O-71
#[test]
fn a_lower_revision_is_refused_naming_the_one_that_is_held() {
    let refusal = ask(&declaration(41, &[]), Some(held(1, 42)), &[]).unwrap_err();
    assert_eq!(refusal.code(), "older_revision");
    assert!(refusal.to_string().contains("have 42"), "{refusal}");
    assert_eq!(ask(&declaration(43, &[]), Some(held(1, 42)), &[]), Ok(Admitted::New));
}

// rule: X-6
#[test]
fn the_same_number_is_the_same_declaration_or_refused() {
    let again = declaration(42, &[]);
    assert_eq!(ask(&again, Some(held(1, 42)), &[]).unwrap_err().code(), "revision_reused");
    let same = Held { sha256: Digest::of(b"new"), ..held(1, 42) };
    assert_eq!(ask(&again, Some(same), &owned(5)), Ok(Admitted::Same));
}

// rule: X-6
#[test]
fn a_later_epoch_that_the_session_states_begins_the_numbers_anew_and_an_earlier_one_is_refused() {
    let mut standing = standing();
    standing.epoch = epoch(2);
    let mut next = declaration(1, &[]);
    next.header.epoch = epoch(2);
    let ask = |held: Held| admit(Some(&standing), Some(&held), &next, Digest::of(b"new"), [].into_iter());
    assert_eq!(ask(held(1, 42)), Ok(Admitted::New));
    assert_eq!(ask(held(3, 1)).unwrap_err().code(), "older_revision");
    let mut forked = held(2, 0);
    forked.revision.epoch.id = EpochId::from_bytes([77; 16]);
    assert_eq!(ask(forked).unwrap_err().code(), "epoch_forked");
}

// rule: H-23
// case: O-65
#[test]
fn an_empty_declaration_is_refused_unless_it_is_final_or_nothing_is_owned() {
    let mut empty = declaration(2, &[]);
    assert_eq!(ask(&empty, Some(held(1, 1)), &owned(40)).unwrap_err().code(), "empty_declaration");
    assert_eq!(ask(&empty, Some(held(1, 1)), &[]), Ok(Admitted::New));
    empty.header.allowed_removals = Some(39);
    assert_eq!(ask(&empty, Some(held(1, 1)), &owned(40)).unwrap_err().code(), "empty_declaration");
    empty.header.allowed_removals = Some(40);
    assert_eq!(ask(&empty, Some(held(1, 1)), &owned(40)), Ok(Admitted::New), "the word covers all");
    empty.header.allowed_removals = None;
    empty.header.is_final = true;
    assert_eq!(ask(&empty, Some(held(1, 1)), &owned(40)), Ok(Admitted::New));
    let mut full = declaration(2, &["/srv/0"]);
    full.header.is_final = true;
    assert_eq!(ask(&full, None, &owned(40)).unwrap_err().code(), "final_not_empty");
}

// rule: H-23
// case: O-65
#[test]
fn without_a_word_a_tenth_or_one_may_leave_and_never_all() {
    let one_of_forty = declaration(2, &["/srv/0"]);
    let refusal = ask(&one_of_forty, None, &owned(40)).unwrap_err();
    assert_eq!(refusal, AdmitRefusal::TooManyRemovals { leaving: 39, owned: 40, limit: 4 });
    assert!(refusal.remedy().contains("--allow-removals 39"));
    let all_but = |left: usize, count: usize| {
        let paths: Vec<String> = (left..count).map(|number| format!("/srv/{number}")).collect();
        declaration(2, &paths.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(ask(&all_but(4, 40), None, &owned(40)), Ok(Admitted::New));
    assert!(ask(&all_but(5, 40), None, &owned(40)).is_err());
    assert_eq!(ask(&all_but(1, 3), None, &owned(3)), Ok(Admitted::New));
    assert!(ask(&all_but(2, 3), None, &owned(3)).is_err());
    // The only thing it owns, exchanged for another: that is all.
    let other = declaration(2, &["/srv/other"]);
    assert_eq!(ask(&other, None, &owned(1)).unwrap_err().code(), "too_many_removals");
    let mut meant = other;
    meant.header.allowed_removals = Some(1);
    assert_eq!(ask(&meant, None, &owned(1)), Ok(Admitted::New));
}

// rule: H-23
#[test]
fn the_word_is_how_many_may_leave_in_all_and_never_less_than_without_it() {
    let all_but = |left: usize, word: u64| {
        let paths: Vec<String> = (left..40).map(|number| format!("/srv/{number}")).collect();
        let mut shrunk = declaration(2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
        shrunk.header.allowed_removals = Some(word);
        ask(&shrunk, None, &owned(40))
    };
    assert_eq!(all_but(10, 10), Ok(Admitted::New));
    let refused = AdmitRefusal::TooManyRemovals { leaving: 11, owned: 40, limit: 10 };
    assert_eq!(all_but(11, 10), Err(refused));
    assert_eq!(all_but(4, 1), Ok(Admitted::New), "a tenth needs no word");
    assert!(all_but(40, 39).is_err(), "all but for the word that covers all");
}

#[test]
fn a_machine_without_a_control_plane_takes_any_bundle_but_no_older_one() {
    let mut bundle = declaration(3, &["/srv/0"]);
    bundle.header.node = NodeId::new("somebody").unwrap();
    let ask = |held: Option<Held>| admit(None, held.as_ref(), &bundle, Digest::of(b"new"), [].into_iter());
    assert_eq!(ask(None), Ok(Admitted::New));
    assert_eq!(ask(Some(held(1, 9))).unwrap_err().code(), "older_revision");
}

proptest! {
    // rule: H-23
    #[test]
    fn whatever_is_admitted_without_a_word_leaves_at_least_nine_tenths_or_all_but_one(
        count in 0_usize..200, kept in 0_usize..200,
    ) {
        let kept = kept.min(count);
        let paths: Vec<String> = (0..kept).map(|number| format!("/srv/{number}")).collect();
        let shrunk = declaration(2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
        let leaving = count - kept;
        let admitted = ask(&shrunk, None, &owned(count)).is_ok();
        prop_assert_eq!(admitted, leaving == 0 || (leaving <= (count / 10).max(1) && kept > 0));
    }
}
