use std::sync::{Arc, Mutex};

use super::*;
use crate::supervisor::{Limits, Supervisor};

const EVERY: Duration = Duration::from_secs(10);

/// Where batches go: what was put, and how many of the next ones fail.
#[derive(Debug, Clone, Default)]
struct Shelf {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    put: Vec<(Vec<u32>, Vec<u32>)>,
    failing: u32,
    /// The next one waits without end.
    is_slow: bool,
    said: Vec<String>,
}

impl Batches for Shelf {
    type One = u32;
    type Error = &'static str;

    async fn put(&self, fresh: BTreeSet<u32>, waiting: BTreeSet<u32>) -> Result<(), &'static str> {
        let is_slow = {
            let mut seen = self.seen.lock().unwrap();
            seen.put.push((fresh.into_iter().collect(), waiting.into_iter().collect()));
            take(&mut seen.is_slow)
        };
        if is_slow {
            std::future::pending::<()>().await;
        }
        let mut seen = self.seen.lock().unwrap();
        let fails = seen.failing > 0;
        seen.failing = seen.failing.saturating_sub(1);
        assert!(seen.put.len() < 9, "put without end");
        if fails { Err("full") } else { Ok(()) }
    }

    fn failed(&self, why: &str) {
        self.seen.lock().unwrap().said.push(why.to_owned());
    }
}

async fn gathering(shelf: &Shelf) -> (Supervisor, Gather<u32>) {
    let gather = Gather::vacant();
    let child = gather.child("gatherer", EVERY, shelf.clone());
    (Supervisor::start("root", Limits::default(), vec![child]).await.unwrap(), gather)
}

/// So long, and what is done by then is done.
async fn pass(time: Duration) {
    tokio::time::sleep(time + Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_told_within_a_while_is_one_batch_and_each_is_in_it_once() {
    let shelf = Shelf::default();
    let (root, gather) = gathering(&shelf).await;
    [3, 1, 3].into_iter().for_each(|one| gather.tell(one).unwrap());
    assert_eq!(shelf.seen.lock().unwrap().put, []);
    pass(EVERY).await;
    assert_eq!(shelf.seen.lock().unwrap().put, [(vec![1, 3], vec![])]);
    pass(EVERY * 3).await;
    assert_eq!(shelf.seen.lock().unwrap().put.len(), 1, "nothing is put away of nothing");
    root.stop().await;
    assert_eq!(shelf.seen.lock().unwrap().put.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_goes_with_the_next_one_and_that_is_said_once() {
    let shelf = Shelf::default();
    shelf.seen.lock().unwrap().failing = 2;
    let (root, gather) = gathering(&shelf).await;
    gather.tell(1).unwrap();
    pass(EVERY).await;
    gather.tell(2).unwrap();
    pass(EVERY * 2).await;
    let expected = [(vec![1], vec![]), (vec![2], vec![1]), (vec![], vec![1, 2])];
    assert_eq!(shelf.seen.lock().unwrap().put, expected);
    assert_eq!(shelf.seen.lock().unwrap().said, ["full"]);
    shelf.seen.lock().unwrap().failing = 1;
    gather.tell(3).unwrap();
    pass(EVERY).await;
    assert_eq!(shelf.seen.lock().unwrap().said, ["full", "full"], "and again after one that did not fail");
    root.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_gathered_is_put_away_when_the_gatherer_stops() {
    let shelf = Shelf::default();
    let (root, gather) = gathering(&shelf).await;
    gather.tell(7).unwrap();
    // It is in the mailbox, and is handled before the end is asked for.
    pass(Duration::ZERO).await;
    root.stop().await;
    assert_eq!(shelf.seen.lock().unwrap().put, [(vec![7], vec![])]);
    assert!(gather.tell(8).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_batch_on_its_way_when_the_gatherer_stops_goes_with_the_last_one() {
    let shelf = Shelf::default();
    shelf.seen.lock().unwrap().is_slow = true;
    let (root, gather) = gathering(&shelf).await;
    gather.tell(1).unwrap();
    pass(EVERY).await;
    gather.tell(2).unwrap();
    pass(Duration::ZERO).await;
    assert_eq!(shelf.seen.lock().unwrap().put, [(vec![1], vec![])], "it is on its way");
    root.stop().await;
    assert_eq!(shelf.seen.lock().unwrap().put, [(vec![1], vec![]), (vec![2], vec![1])]);
}
