//! Stores that open and are not as we left them: somebody altered a row, a table or a number by hand.

use tenure_actors::clock::ManualClock;
use tenure_actors::database::rusqlite::Connection;
use tenure_protocol::content::{Piece, Put};
use tenure_protocol::id::Digest;
use tenure_protocol::operator::{Declare, Events, Render};
use tenure_protocol::refusal::{Explain as _, Refusal};

use super::declaring::{folder, module};
use super::scripted::{START, Up, invitation, name, options, refusal, up};
use crate::daemon::start;
use crate::ground::Ground;

fn alter(root: &std::path::Path, sql: &str) {
    let store = Connection::open(Ground::new(root).store()).unwrap();
    store.execute_batch(&format!("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = OFF; {sql}")).unwrap();
}

/// Why a control plane that was stopped does not start any more.
async fn not_started_after(up: Up, sql: &str) -> Refusal {
    let Up { control, folder, operator, .. } = up;
    drop(operator);
    control.stop().await;
    alter(folder.path(), sql);
    match start(options(folder.path(), &ManualClock::at(START))).await {
        Ok(_) => panic!("it started"),
        Err(refusal) => refusal.refusal(),
    }
}

// case: O-70
#[tokio::test]
async fn a_store_whose_schema_says_it_is_older_than_it_is_is_named_with_the_step_that_failed() {
    let refused = not_started_after(up().await, "PRAGMA user_version = 0").await;
    assert!(
        refused.is("store_migration") && refused.happened.contains("step 1 of the schema"),
        "{refused:?}"
    );
}

// case: O-70
#[tokio::test]
async fn a_node_that_cannot_be_read_from_the_store_keeps_the_control_plane_from_starting_and_is_said() {
    let up = up().await;
    up.invite("edge-1").await;
    let refused = not_started_after(up, "UPDATE node SET name = 'no name of a node'").await;
    assert!(refused.is("not_started") && refused.remedy.contains("look at the lines"), "{refused:?}");
    assert!(refused.happened.contains("store"), "{refused:?}");
}

// case: O-70
#[tokio::test]
async fn a_table_that_is_gone_is_a_fault_of_the_store_and_says_nothing_of_the_node() {
    let up = up().await;
    alter(up.folder.path(), "DROP TABLE event");
    let refused = refusal(up.ask("events", &Events { after: None, node: None }).await);
    assert!(refused.is("store_fault") && refused.happened.contains("no such table"), "{refused:?}");
    assert!(refused.remedy.starts_with("try later"), "{refused:?}");
}

// rule: S-22
#[tokio::test]
async fn an_upload_that_finds_no_room_is_told_when_there_will_be_some() {
    let up = up().await;
    alter(
        up.folder.path(),
        // As much as may lie there that no declaration names: a gibibyte.
        "INSERT INTO content (sha256, size, received, added_at) VALUES (x'00', 1 << 30, 1 << 30, 1)",
    );
    let pieces = vec![Piece { sha256: Digest::of(b"a"), size: 1, offset: 0, bytes: b"a".to_vec() }];
    let refused = refusal(up.ask("catalogue", &Put { pieces }).await);
    assert!(refused.is("no_room") && refused.remedy.contains("in an hour"), "{refused:?}");
}

// rule: S-22
#[tokio::test]
async fn what_is_made_of_a_folder_is_kept_only_where_there_is_room_and_without_it_nothing_is_declared() {
    let up = up().await;
    up.ask("fleet", &invitation("edge-1")).await.unwrap();
    let text = module(&[("/etc/motd", &"one line\\n".repeat(5_000))]);
    alter(
        up.folder.path(),
        // The folder still finds room, and what is made of it no more.
        "INSERT INTO content (sha256, size, received, added_at) VALUES (x'00', (1 << 30) - 60000, (1 << 30) - 60000, 1)",
    );
    let folder = up.folder_of(&folder(&text)).await;
    for plan in [true, false] {
        let asked = Declare { folder, plan, allow_removals: None };
        let refused = refusal(up.ask("catalogue", &asked).await);
        assert!(refused.is("no_room") && refused.remedy.contains("in an hour"), "{refused:?}");
        assert_eq!(refused.means, "nothing was declared for any node");
    }
    let asked = Render { folder, node: name("edge-1") };
    assert!(refusal(up.ask("catalogue", &asked).await).is("no_room"));
    assert_eq!(up.node("edge-1").await.line.revision.declared, None);
}

// rule: S-08
// rule: S-22
#[tokio::test]
async fn plans_leave_room_for_uploads_and_say_of_a_node_beyond_their_share_that_it_cannot_be_asked() {
    let up = up().await;
    let mut host = up.host("edge-1").await;
    let _open = host.session(&up).await;
    alter(
        up.folder.path(),
        // A quarter of the room.
        "INSERT INTO content (sha256, size, received, added_at) VALUES (x'00', 1 << 28, 1 << 28, 1)",
    );
    let declared = up.declare_with(&folder(&module(&[("/etc/motd", "one")])), true, None).await.unwrap();
    let plan = up.plan(&declared).await.nodes.remove(0);
    assert_eq!(plan.changes.len(), 1, "the plan itself is whole");
    let why = plan.cannot_know.unwrap();
    assert!(why.is("no_room_to_foresee") && why.remedy.contains("fewer nodes"), "{why:?}");
    let kept = up.control.plane().store.content(plan.declaration.unwrap().sha256).await.unwrap();
    assert_eq!(kept, None);
    let written = up.declare(&folder(&module(&[("/etc/motd", "one")]))).await.unwrap();
    assert!(written.written, "and declaring goes on");
}

// rule: S-22
#[tokio::test]
async fn the_documents_of_plans_leave_half_of_the_room_to_what_is_uploaded() {
    let up = up().await;
    up.ask("fleet", &invitation("edge-1")).await.unwrap();
    alter(
        up.folder.path(),
        // Half of the room.
        "INSERT INTO content (sha256, size, received, added_at) VALUES (x'00', 1 << 29, 1 << 29, 1)",
    );
    let module = module(&[("/etc/motd", "one")]);
    let refused = refusal(up.declare_with(&folder(&module), true, None).await);
    assert!(refused.is("no_room") && refused.remedy.contains("in an hour"), "{refused:?}");
    let written = up.declare(&folder(&module)).await.unwrap();
    assert!(written.written, "and declaring goes on");
}

// case: O-70
#[tokio::test]
async fn a_declaration_that_cannot_be_read_any_more_is_named_and_nothing_is_declared_over_it() {
    let up = up().await;
    up.ask("fleet", &invitation("edge-1")).await.unwrap();
    up.declare(&folder(&module(&[("/etc/motd", "one")]))).await.unwrap();
    alter(
        up.folder.path(),
        "DELETE FROM piece WHERE content IN (SELECT id FROM content WHERE sha256 IN (SELECT sha256 FROM declaration));
         DELETE FROM content WHERE sha256 IN (SELECT sha256 FROM declaration)",
    );
    let refused = refusal(up.declare(&folder(&module(&[("/etc/motd", "two")]))).await);
    assert!(refused.is("last_unreadable") && refused.happened.contains("edge-1"), "{refused:?}");
    assert_eq!(refused.means, "nothing was declared for any node");
}
