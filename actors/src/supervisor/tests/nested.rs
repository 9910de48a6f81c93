//! A supervisor below a supervisor.

use super::*;

const ONCE: Limits = Limits {
    restarts: 1,
    window: Duration::from_secs(60),
    first_backoff: Duration::from_millis(100),
    longest_backoff: Duration::from_secs(1),
    stable_after: Duration::from_secs(60),
};

/// A supervisor `inner` with the children `a` and `b`.
fn inner(a: &Address<Msg>, b: &Address<Msg>, diary: &Diary, slot: &Supervisor) -> Child {
    let (a, b, diary) = (a.clone(), b.clone(), diary.clone());
    Supervisor::as_child("inner", ONCE, move || vec![probe("a", &a, &diary), probe("b", &b, &diary)], slot)
}

async fn crash(address: &Address<Msg>) {
    until(|| !address.is_vacant()).await;
    address.tell(Msg::Panic).unwrap();
    until(|| address.is_vacant()).await;
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_past_its_limit_is_one_failure_to_its_parent_which_starts_it_anew() {
    let (a, b, diary, slot) = (Address::vacant(), Address::vacant(), Diary::default(), Supervisor::vacant());
    let root = root(vec![inner(&a, &b, &diary, &slot)]).await;
    assert_eq!(slot.alive(SECOND).await.unwrap().len(), 2);
    crash(&a).await;
    crash(&a).await;
    until(|| diary.count("start b") == 2).await;
    assert_eq!(diary.count("stop b"), 1, "the neighbour stopped properly first");
    until(|| !b.is_vacant() && !a.is_vacant()).await;
    assert_eq!(count(&a).await, Ok(1), "reached through the same address");
    let states = root.alive(SECOND).await.unwrap();
    assert_eq!(states, [("inner".to_owned(), ChildState::Running)]);
}

#[tokio::test(start_paused = true)]
async fn failures_escalate_until_the_root_gives_up_and_says_where_it_began() {
    let (a, b, diary, slot) = (Address::vacant(), Address::vacant(), Diary::default(), Supervisor::vacant());
    let root = Supervisor::start("root", ONCE, vec![inner(&a, &b, &diary, &slot)]).await.unwrap();
    for _ in 0..4 {
        crash(&a).await;
    }
    let why = "a failed too often, at last: broke".to_owned();
    assert_eq!(root.ended().await, Ended::GaveUp { child: "inner".into(), why });
    assert_eq!(slot.ended().await, Ended::GaveUp { child: "a".into(), why: "broke".into() });
}

#[tokio::test(start_paused = true)]
async fn stopping_the_root_stops_the_whole_tree_from_its_leaves() {
    let (a, b, c, diary) = (Address::vacant(), Address::vacant(), Address::vacant(), Diary::default());
    let slot = Supervisor::vacant();
    let root = root(vec![probe("c", &c, &diary), inner(&a, &b, &diary, &slot)]).await;
    diary.take();
    root.stop().await;
    assert_eq!(diary.take(), ["stop b", "stop a", "stop c"]);
    assert_eq!(slot.ended().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn an_inner_supervisor_whose_child_does_not_start_fails_as_a_whole_and_is_retried() {
    let (a, diary, slot) = (Address::vacant(), Diary::default(), Supervisor::vacant());
    let (address, noted, tries) = (a.clone(), diary.clone(), Arc::new(Mutex::new(0)));
    let children = move || {
        let tries = Arc::clone(&tries);
        let plan = move |_| {
            *tries.lock().unwrap() += 1;
            if *tries.lock().unwrap() < 3 { Start::Fails } else { Start::Well }
        };
        vec![starting("a", &address, &noted, plan)]
    };
    let _root = root(vec![Supervisor::as_child("inner", ONCE, children, &slot)]).await;
    assert_eq!(diary.take(), ["try a", "try a", "try a", "start a"]);
    assert_eq!(slot.alive(SECOND).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_is_killed_still_says_that_it_ended() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    root.address.cell().unwrap().kill();
    let why = "the supervisor itself was ended".to_owned();
    assert_eq!(root.ended().await, Ended::GaveUp { child: "root".into(), why });
}
