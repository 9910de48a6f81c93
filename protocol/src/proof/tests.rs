use super::*;

fn claim<'a>(purpose: Purpose, node: &'a NodeId, binding: &'a Binding) -> Claim<'a> {
    Claim {
        purpose,
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node,
        generation: Generation(2),
        binding,
    }
}

// rule: S-04
#[test]
fn a_proof_holds_for_its_own_claim_and_for_no_other() {
    let key = NodeKey::from_seed(&[7; 32]);
    let (edge, other) = (NodeId::new("edge-1").unwrap(), NodeId::new("edge-2").unwrap());
    let (here, there) = ([4; 32], [5; 32]);
    let good = claim(Purpose::Session, &edge, &here);
    let proof = key.prove(&good);
    assert!(key.public().proves(&good, &proof));

    for purpose in Purpose::ALL {
        assert_eq!(key.public().proves(&claim(purpose, &edge, &here), &proof), purpose == Purpose::Session);
    }
    assert!(!key.public().proves(&claim(Purpose::Session, &other, &here), &proof), "another node");
    assert!(!key.public().proves(&claim(Purpose::Session, &edge, &there), &proof), "another connection");
    assert!(!key.public().proves(&Claim { generation: Generation(3), ..good }, &proof), "another generation");
    let elsewhere = Claim { control_plane_id: ControlPlaneId::from_bytes([9; 16]), ..good };
    assert!(!key.public().proves(&elsewhere, &proof), "another control plane");
    assert!(!NodeKey::from_seed(&[8; 32]).public().proves(&good, &proof), "another key");
}

// rule: S-04
#[test]
fn every_flipped_bit_of_a_proof_makes_it_worthless() {
    let key = NodeKey::from_seed(&[7; 32]);
    let edge = NodeId::new("edge-1").unwrap();
    let good = claim(Purpose::Enrol, &edge, &[4; 32]);
    let proof = key.prove(&good);
    for bit in 0..512 {
        let mut bytes = proof.0;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!key.public().proves(&good, &Proof(bytes)), "bit {bit}");
    }
}

// rule: S-04
#[test]
fn a_key_of_small_order_proves_nothing() {
    let edge = NodeId::new("edge-1").unwrap();
    let mut identity = [0; 32];
    identity[0] = 1;
    for weak in [identity, [0; 32]] {
        assert!(
            !PublicKey::from_bytes(weak).proves(&claim(Purpose::Session, &edge, &[4; 32]), &Proof([0; 64]))
        );
    }
}

// rule: S-04
#[test]
fn the_signed_bytes_have_this_form_for_ever() {
    let edge = NodeId::new("edge-1").unwrap();
    let bytes = claim(Purpose::Session, &edge, &[4; 32]).bytes();
    let expected = [
        &b"tenure/node-key/v1\0"[..],
        &[0, 0, 0, 7],
        b"session",
        &[0, 0, 0, 16],
        &[1; 16],
        &[0, 0, 0, 6],
        b"edge-1",
        &[0, 0, 0, 0, 0, 0, 0, 2],
        &[4; 32],
    ]
    .concat();
    assert_eq!(bytes, expected);
}

#[test]
fn a_key_cannot_be_printed() {
    assert_eq!(format!("{:?}", NodeKey::from_seed(&[7; 32])), "NodeKey(…)");
}
