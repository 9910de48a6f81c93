//! What is sensitive, by its word or by its mode, stands in nothing that leaves the host, whatever becomes of it (S-19):
//! neither a line of it nor a digest by which it could be guessed.

use tenure_actors::database::rusqlite::Connection;

use super::*;

/// Short, as passwords are: its digest would say it to whoever tries.
const SECRETS: [&str; 3] = ["hunter2", "the one before it", "what somebody wrote there by hand"];

impl Machine {
    /// What was foreseen of a pass and all it reports, in all their words.
    fn said(&self) -> (PassDone, String) {
        let foreseen = self.foresee(&self.declaration());
        let done = self.pass();
        let spooled = self.store.spooled(1000).unwrap();
        let outcomes = self.store.outcomes_page(None, 1000).unwrap();
        let said = format!("{foreseen:#?} {done:#?} {spooled:#?} {outcomes:#?}");
        (done, said)
    }
}

#[track_caller]
fn assert_untold(said: &str, when: &str) {
    for secret in SECRETS {
        for word in [secret.to_owned(), Digest::of(secret.as_bytes()).short()] {
            let at = said.find(&word).map(|at| &said[at.saturating_sub(200)..at + word.len()]);
            assert!(at.is_none(), "{when}: {word} of `{secret}` is told: …{}", at.unwrap_or_default());
        }
    }
}

const FORMS: [(&str, &str, bool); 3] =
    [("/srv/closed", "0600", false), ("/srv/of-a-group", "0640", false), ("/srv/said-so", "0644", true)];

fn declare(machine: &mut Machine, secret: &str) {
    for (path, mode, sensitive) in FORMS {
        let more = if sensitive {
            serde_json::json!({ "mode": mode, "sensitive": true })
        } else {
            serde_json::json!({ "mode": mode })
        };
        machine.file_with(path, secret, more);
    }
}

// rule: S-19
#[test]
fn whatever_becomes_of_a_secret_neither_it_nor_its_digest_is_told() {
    let mut machine = Machine::new();
    let told = |machine: &Machine, when: &str| {
        let (done, said) = machine.said();
        assert_untold(&said, when);
        done
    };
    declare(&mut machine, SECRETS[1]);
    assert_eq!(told(&machine, "made").summary.counts.in_words(), "3 applied");
    declare(&mut machine, SECRETS[0]);
    assert_eq!(told(&machine, "changed").summary.counts.in_words(), "3 applied");
    for (path, ..) in FORMS {
        std::fs::write(machine.at(path), SECRETS[2]).unwrap();
    }
    let done = told(&machine, "changed by hand");
    assert_eq!(outcome(&done, "file:/srv/closed"), (Applied, Some("drift".to_owned())));
    for (path, ..) in FORMS {
        std::fs::remove_file(machine.at(path)).unwrap();
        symlink("/srv/elsewhere", machine.at(path)).unwrap();
    }
    assert_eq!(told(&machine, "in the way of a link").summary.counts.in_words(), "3 refused");
    for (path, ..) in FORMS {
        std::fs::remove_file(machine.at(path)).unwrap();
    }
    told(&machine, "made again");
    for (path, ..) in FORMS {
        std::fs::write(machine.at(path), SECRETS[2]).unwrap();
    }
    machine.resources.clear();
    machine.file("/srv/rest", "rest");
    let done = told(&machine, "left");
    assert_eq!(line(&done, "file:/srv/closed").outcome, Released);
}

// rule: S-19
#[test]
fn a_secret_that_is_found_and_held_is_not_told_either() {
    let mut machine = Machine::adopted();
    for (path, mode, _) in FORMS {
        machine.write(path, SECRETS[2]);
        let mode = u32::from_str_radix(mode, 8).unwrap();
        std::fs::set_permissions(machine.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    declare(&mut machine, SECRETS[0]);
    let (done, said) = machine.said();
    assert_eq!(done.summary.counts.in_words(), "3 held");
    assert_untold(&said, "held");
    machine.head.taken = vec!["base"];
    let (done, said) = machine.said();
    assert_eq!(done.summary.counts.in_words(), "3 applied");
    assert_untold(&said, "taken");
}

// rule: S-19
#[test]
fn a_secret_that_cannot_be_written_is_named_by_its_path_and_not_by_its_digest() {
    let mut machine = Machine::new();
    declare(&mut machine, SECRETS[0]);
    // One that is not here, as its bytes were lost.
    let missing = Digest::of(SECRETS[1].as_bytes()).to_string();
    let content = serde_json::json!({ "sha256": missing, "size": SECRETS[1].len() });
    machine.file_with("/srv/missing", "", serde_json::json!({ "mode": "0600", "content": content }));
    let store = Connection::open(machine.ground.store()).unwrap();
    let altered = "PRAGMA busy_timeout = 5000; UPDATE piece SET bytes = CAST('another' AS BLOB)";
    store.execute_batch(altered).unwrap();
    let (done, said) = machine.said();
    assert_eq!(outcome(&done, "file:/srv/missing"), (Failed, Some("content_missing".to_owned())));
    assert_eq!(outcome(&done, "file:/srv/closed"), (Failed, Some("content_unreadable".to_owned())));
    for path in ["/srv/missing", "/srv/closed"] {
        assert!(reason(&done, &format!("file:{path}")).contains(path), "{done:#?}");
    }
    assert_untold(&said, "not written");
}
