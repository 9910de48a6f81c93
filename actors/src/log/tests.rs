use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;

use super::{DEFAULT_FILTER, Journal, Log, OneLine, filter, start, stderr_is_journal};
use crate::clock::{ManualClock, Moment};

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the terminal would show of `events`, at seven seconds past 05:06.
fn shown(asked: &str, events: impl FnOnce()) -> String {
    let paper = Paper::default();
    let onto = paper.clone();
    let clock = ManualClock::at(Moment::from_millis(1_000 * (3_600 * 5 + 60 * 6 + 7))).shared();
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(move || onto.clone())
        .with_ansi(false)
        .event_format(OneLine { clock });
    let subscriber = tracing_subscriber::registry().with(filter(asked).0).with(layer);
    tracing::subscriber::with_default(subscriber, events);
    let bytes = paper.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn an_event_is_one_compact_line_with_its_time_level_message_and_fields() {
    let text = shown("", || tracing::warn!(node = %"edge-1", tries = 3, "not reached"));
    assert_eq!(text, "05:06:07Z warn not reached node=edge-1 tries=3\n");
}

/// A socket that stands for the journal's, and what a subscriber that writes to it says in `events`: the fields of each
/// datagram, in order.
fn journalled(at: &Path, events: impl FnOnce()) -> Vec<Vec<String>> {
    let journal = UnixDatagram::bind(at).unwrap();
    journal.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let layer = Journal::at(at, "tenure-test").unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
    let mut bytes = vec![0; 256 * 1024];
    let mut datagrams = Vec::new();
    while let Ok(length) = journal.recv(&mut bytes) {
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        datagrams.push(text.lines().map(str::to_owned).collect());
    }
    datagrams
}

fn has(fields: &[String], field: &str) -> bool {
    fields.iter().any(|line| line == field)
}

#[test]
fn the_journals_message_is_the_whole_line_and_its_fields_stand_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let said = journalled(&folder.path().join("socket"), || {
        tracing::warn!(address = %"192.0.2.1:7443", reason = %"silent", tries = 3, why = "no beat", "link down");
        tracing::info!(none = None::<&str>, "link up");
    });
    let [down, up] = &said[..] else { panic!("{said:?}") };
    assert_eq!(down[0], "MESSAGE=link down address=192.0.2.1:7443 reason=silent tries=3 why=\"no beat\"");
    for field in [
        "PRIORITY=4",
        "SYSLOG_IDENTIFIER=tenure-test",
        "ADDRESS=192.0.2.1:7443",
        "REASON=silent",
        "TRIES=3",
        "WHY=no beat",
    ] {
        assert!(has(down, field), "{field} of {down:?}");
    }
    assert_eq!(down.iter().filter(|line| line.starts_with("MESSAGE=")).count(), 1);
    assert!(has(up, "MESSAGE=link up") && has(up, "PRIORITY=6"), "{up:?}");
}

#[test]
fn a_line_break_in_a_text_forges_no_field_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let said = journalled(&folder.path().join("socket"), || {
        tracing::info!(said = "a\nPRIORITY=0\u{1b}[2J", "heard\nMESSAGE=all is well");
    });
    let [event] = &said[..] else { panic!("{said:?}") };
    assert_eq!(event.iter().filter(|line| line.starts_with("MESSAGE=")).count(), 1, "{event:?}");
    assert_eq!(event.iter().filter(|line| line.starts_with("PRIORITY=")).count(), 1, "{event:?}");
    assert!(has(event, "SAID=a\\nPRIORITY=0\\u{1b}[2J"), "{event:?}");
}

#[test]
fn a_text_without_end_is_cut_and_the_event_is_still_one_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let long = "ä".repeat(1_000_000);
    let said = journalled(&folder.path().join("socket"), || tracing::info!(long, short = 1, "said"));
    let [event] = &said[..] else { panic!("{} datagrams", said.len()) };
    assert!(has(event, "SHORT=1") && event[0].starts_with("MESSAGE=said long="), "{}", event[0].len());
}

#[test]
fn where_no_journal_listens_the_start_finds_out() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Journal::at(&folder.path().join("socket"), "tenure-test").is_err());
}

#[test]
fn a_line_break_in_a_text_forges_no_second_event() {
    let text = shown("", || tracing::info!(said = %"a\n05:06:07Z info all is well", "heard\r\nit"));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("\\n"), "{text}");
}

#[test]
fn the_default_filter_leaves_out_details_and_ractors_own_spans() {
    let text = shown("", || {
        tracing::debug!("detail");
        tracing::info!(target: "ractor::actor", "chatter");
        tracing::warn!(target: "ractor::actor", "trouble");
    });
    assert_eq!(text, "05:06:07Z warn trouble\n");
}

#[test]
fn a_filter_that_cannot_be_read_is_replaced_and_complained_about() {
    let (used, complaint) = filter("info,=!");
    assert!(complaint.is_some());
    assert_eq!(used.to_string(), filter(DEFAULT_FILTER).0.to_string());
}

#[test]
fn the_journal_is_known_by_the_stream_and_not_by_the_variable_alone() {
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("stderr");
    std::fs::write(&stream, "").unwrap();
    let file = std::fs::metadata(&stream).unwrap();
    let named = format!("{}:{}", file.dev(), file.ino());
    assert!(stderr_is_journal(Some(&named), &stream));
    assert!(!stderr_is_journal(Some("1:1"), &stream), "inherited by a process whose stderr goes elsewhere");
    assert!(!stderr_is_journal(Some("nonsense"), &stream));
    assert!(!stderr_is_journal(None, &stream));
    assert!(!stderr_is_journal(Some(&named), &folder.path().join("absent")));
}

#[test]
fn starting_the_log_twice_is_harmless() {
    start("tenure-test", Log::Terminal, "off");
    start("tenure-test", Log::Auto, "nonsense=,");
}
