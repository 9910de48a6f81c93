use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::{Progress, Pulse, child};
use crate::supervisor::{Limits, Supervisor};

const SECOND: Duration = Duration::from_secs(1);

/// A watched root, and what its watchdog said so far.
async fn watched(progress: &Progress) -> (Supervisor, Arc<Mutex<Vec<Pulse>>>) {
    let root = Supervisor::start("root", Limits::default(), Vec::new()).await.unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&said);
    let tell = move |pulse: &Pulse| ear.lock().unwrap().push(pulse.clone());
    root.add(child(&root, progress, 3 * SECOND, tell)).await.unwrap();
    (root, said)
}

async fn said_by(said: &Mutex<Vec<Pulse>>, seconds: u32) -> Vec<Pulse> {
    let until = Instant::now() + seconds * SECOND + SECOND / 2;
    tokio::time::sleep_until(until).await;
    std::mem::take(&mut *said.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_well_process_is_kept_alive_three_times_an_interval() {
    let (_root, said) = watched(&Progress::new()).await;
    let pulses = said_by(&said, 3).await;
    assert_eq!(pulses, vec![Pulse::Alive; 4], "at the start and after each second");
}

#[tokio::test(start_paused = true)]
async fn the_keepalive_is_withheld_while_a_step_is_past_its_budget_and_sent_again_after() {
    let progress = Progress::new();
    let (_root, said) = watched(&progress).await;
    progress.step("apt install nginx", 2 * SECOND);
    let pulses = said_by(&said, 4).await;
    let late = Pulse::Withheld("apt install nginx has taken 3 s of 2 s".into());
    assert_eq!(pulses[..3], [Pulse::Alive, Pulse::Alive, Pulse::Alive]);
    assert_eq!(pulses[3], late);
    progress.idle();
    assert_eq!(said_by(&said, 2).await.last(), Some(&Pulse::Alive));
}

#[tokio::test(start_paused = true)]
async fn a_long_step_with_a_budget_to_match_is_not_taken_for_a_hang() {
    let progress = Progress::new();
    let (_root, said) = watched(&progress).await;
    progress.step("unpack", 60 * SECOND);
    assert!(said_by(&said, 50).await.iter().all(|pulse| *pulse == Pulse::Alive));
}

#[tokio::test(start_paused = true)]
async fn the_keepalive_is_withheld_while_the_root_does_not_answer() {
    let (root, said) = watched(&Progress::new()).await;
    assert_eq!(said_by(&said, 1).await.last(), Some(&Pulse::Alive));
    // A start that hangs holds up the root, which then answers nobody.
    let stuck = root.clone();
    tokio::spawn(async move { stuck.add(crate::supervisor::tests::never_starts("stuck")).await });
    let pulses = said_by(&said, 10).await;
    let withheld = "the root does not answer: no answer came within 1 s";
    assert_eq!(pulses.last(), Some(&Pulse::Withheld(withheld.into())));
}

#[tokio::test(start_paused = true)]
async fn the_next_step_replaces_the_one_before() {
    let progress = Progress::new();
    let begun = Instant::now();
    progress.step("first", SECOND);
    assert_eq!(progress.overdue(begun + SECOND), None);
    assert!(progress.overdue(begun + 2 * SECOND).is_some_and(|why| why.starts_with("first")));
    progress.step("second", 5 * SECOND);
    assert_eq!(progress.overdue(begun + 4 * SECOND), None);
    assert!(progress.overdue(begun + 6 * SECOND).is_some_and(|why| why.starts_with("second")));
}
