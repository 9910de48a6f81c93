use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;

use super::{DEFAULT_FILTER, Log, OneLine, filter, start, stderr_is_journal};
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
