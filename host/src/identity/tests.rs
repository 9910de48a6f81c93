use tenure_protocol::id::EpochId;

use super::*;

fn epoch(number: u64, id: u8) -> Epoch {
    Epoch { number, id: EpochId::from_bytes([id; 16]) }
}

// rule: S-07
#[test]
fn an_epoch_rises_and_never_falls_forks_or_leaps() {
    let held = epoch(3, 1);
    assert_eq!(judge_epoch(held, epoch(3, 1)), Ok(epoch(3, 1)));
    assert_eq!(judge_epoch(held, epoch(4, 9)), Ok(epoch(4, 9)));
    assert_eq!(judge_epoch(held, epoch(3, 2)), Err(StandingRefused::OtherLife { number: 3 }));
    assert_eq!(judge_epoch(held, epoch(2, 1)), Err(StandingRefused::WentBack { stated: 2, held: 3 }));
    assert_eq!(judge_epoch(held, epoch(1_003, 1)).map(|e| e.number), Ok(1_003));
    assert_eq!(judge_epoch(held, epoch(1_004, 1)), Err(StandingRefused::TooFar { stated: 1_004, held: 3 }));
}

// rule: N-05
// rule: X-6
#[test]
fn an_older_standing_is_refused_within_an_epoch_and_a_restored_one_is_taken_as_it_states() {
    let held = StoredIdentity { fencing: FencingToken(5), ..crate::manifest::tests::identity("edge-1") };
    let welcome = |epoch, fencing| Welcome {
        session: tenure_protocol::id::SessionId::random(),
        epoch,
        protocol: 1,
        fencing: FencingToken(fencing),
        mode: Mode::Converged,
        lease_ms: 0,
        heartbeat_ms: 0,
        silence_ms: 0,
        token: tenure_protocol::wire::codec::decode(&tenure_protocol::wire::codec::encode(
            &tenure_protocol::proof::PublicKey::from_bytes([0; 32]),
        ))
        .unwrap(),
        token_expires: Millis(0),
        token_expires_in_ms: 0,
        now: Millis(0),
        roots: Vec::new(),
        declared: None,
    };
    let after = held.after(&welcome(held.epoch, 6)).unwrap();
    assert_eq!((after.fencing, after.mode), (FencingToken(6), Mode::Converged));
    let lower = held.after(&welcome(held.epoch, 4));
    let (stated, held_token) = (FencingToken(4), FencingToken(5));
    assert_eq!(lower, Err(StandingRefused::FencingWentBack { stated, held: held_token }));
    assert_eq!(held.after(&welcome(epoch(2, 2), 4)).unwrap().fencing, FencingToken(4));
}

#[test]
fn roots_that_a_session_states_are_kept_only_if_they_can_be_read_and_carry_on_the_pinned_ones() {
    let root = |bytes: &[u8]| Root { number: 1, certificate: bytes.to_vec() };
    let (ours, new) = (authority(), authority());
    let held = StoredIdentity { roots: vec![root(&ours)], ..crate::manifest::tests::identity("edge-1") };
    assert!(held.carries_on(&[root(&ours), root(&new)]));
    assert!(!held.carries_on(&[]));
    assert!(!held.carries_on(&[root(&new)]), "a wrong answer would lock this machine out");
    assert!(!held.carries_on(&[root(&ours), root(b"no certificate")]));
}

fn authority() -> Vec<u8> {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    params.self_signed(&key).unwrap().der().to_vec()
}

// rule: H-09
// rule: H-11
#[test]
fn a_copy_that_a_death_left_behind_its_identity_is_made_anew_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let ground = crate::ground::Ground::new(folder.path(), true);
    ground.create().unwrap();
    let now = tenure_actors::clock::Moment::from_millis(1);
    let store = crate::store::Store::open(&ground, true, now).unwrap().store;
    let files = key::KeyFiles::at(ground.node_key());
    let enrolled = |token: &[u8], fencing| {
        let token = Digest::of(token);
        let key = files.for_token(token).unwrap().public();
        let identity = crate::manifest::tests::identity("edge-1");
        StoredIdentity { key, token, fencing: FencingToken(fencing), ..identity }
    };
    let first = enrolled(b"first", 1);
    keep::keep(&store, &ground, &first).unwrap();
    files.promote().unwrap();
    // Enrolled anew, and killed after the commit.
    let second = enrolled(b"second", 2);
    store.set_identity(&second).unwrap();
    files.promote().unwrap();
    assert_eq!(keep::recover(&store, &ground).unwrap().as_ref(), Some(&second));
    // Now the store is lost, and the copy is all there is.
    store.clear_identity().unwrap();
    assert_eq!(keep::recover(&store, &ground).unwrap(), Some(second));
}
