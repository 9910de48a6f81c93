use std::os::unix::fs::PermissionsExt as _;

use tenure_protocol::declaration::Header;
use tenure_protocol::id::{ControlPlaneId, Epoch, EpochId, Generation, ModuleName, NodeId, RevisionNumber};
use tenure_protocol::machine::Mode;
use tenure_protocol::operator::Rendered;
use tenure_protocol::resource::{Content, Resource};

use super::*;
use crate::caller::tests::{answered_by, asked, ok};
use crate::content::tests::Shelf;
use crate::screen::tests::kept;

/// A declaration of one file with this content.
fn declaration(content: &[u8]) -> Vec<u8> {
    let header = Header {
        control_plane_id: ControlPlaneId::from_bytes([1; 16]),
        node: NodeId::new("edge-1").unwrap(),
        generation: Generation(1),
        epoch: Epoch { number: 1, id: EpochId::from_bytes([0; 16]) },
        revision: RevisionNumber(1),
        mode: Mode::Converged,
        taken: vec![],
        allowed_removals: None,
        is_final: false,
    };
    let spec = tenure_protocol::resource::Spec::File(
        serde_json::from_value(json!({
            "path": "/etc/a.conf",
            "content": { "sha256": Digest::of(content), "size": content.len() },
            "mode": "0600", "owner": "root", "group": "root",
        }))
        .unwrap(),
    );
    let module = ModuleName::new("web").unwrap();
    let resource = Resource { key: spec.key(), module, needs: vec![], spec };
    Declaration::encode(&header, &[resource]).unwrap()
}

#[tokio::test]
async fn rendering_a_node_fetches_its_declaration_and_every_content_it_names() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fleet.toml"), "[node.edge-1]\n").unwrap();
    let gathered = folder::gather(dir.path()).unwrap();
    let document = declaration(b"secret");
    let shelf = Shelf::with(&[&document, b"secret"]);
    let rendered = Content { sha256: Digest::of(&document), size: document.len().try_into().unwrap() };
    let control = answered_by(move |request| match asked::<Render>(request) {
        Some(render) => {
            assert!(shelf.get(render.folder).is_some(), "the folder is uploaded before it is rendered");
            ok::<Render>(Rendered { declaration: rendered })
        }
        None => shelf.answer(request).unwrap(),
    });
    let out = dir.path().join("b");
    let order =
        command::Render { dir: dir.path().into(), node: NodeId::new("edge-1").unwrap(), out: out.clone() };
    let (mut screen, said, _) = kept(false, None);
    assert_eq!(render(&order, &gathered, &control, &mut screen).await.unwrap(), Exit::Done);
    assert_eq!(said.text(), format!("{}: 1 resource of edge-1\n", out.display()));
    assert_eq!(std::fs::read(out.join("declaration.json")).unwrap(), document);
    let blob = out.join("blobs/sha256").join(Digest::of(b"secret").to_string());
    assert_eq!(std::fs::read(blob).unwrap(), b"secret");
}

fn blobs() -> BTreeMap<Digest, Vec<u8>> {
    [(Digest::of(b"secret"), b"secret".to_vec())].into()
}

#[test]
fn a_bundle_has_its_declaration_and_each_content_under_its_digest_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("b");
    write(&out, b"{}", &blobs()).unwrap();
    let blob = out.join("blobs/sha256").join(Digest::of(b"secret").to_string());
    assert_eq!(std::fs::read(out.join("declaration.json")).unwrap(), b"{}");
    assert_eq!(std::fs::read(&blob).unwrap(), b"secret");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&out), mode(&blob)), (0o700, 0o600));
}

#[test]
fn a_bundle_is_never_written_into_something_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let trouble = write(dir.path(), b"{}", &blobs()).unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::Refused, "file_exists"));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
