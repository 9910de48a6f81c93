//! How children and supervisors stop, and that what was removed stays away.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_supervisor_stops_its_children_in_reverse_order_and_each_runs_its_post_stop() {
    let (a, b, c, diary) = (Address::vacant(), Address::vacant(), Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary), probe("b", &b, &diary)]).await;
    root.add(probe("c", &c, &diary)).await.unwrap();
    diary.take();
    root.stop().await;
    assert_eq!(diary.take(), ["stop c", "stop b", "stop a"]);
    assert_eq!(root.ended().await, Ended::Stopped);
    assert!(a.is_vacant() && b.is_vacant() && c.is_vacant());
    root.stop().await;
    let late = root.add(probe("d", &a, &diary)).await;
    assert_eq!(late, Err(StartError::NotRunning { child: "d".into() }));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_stop_in_its_time_is_killed_and_the_rest_stop_properly() {
    let (a, b, diary) = (Address::vacant(), Address::vacant(), Diary::default());
    let slow = probe("b", &b, &diary).stop_within(2 * SECOND);
    let root = root(vec![probe("a", &a, &diary), slow]).await;
    b.tell(Msg::HangFor(3600 * SECOND)).unwrap();
    diary.take();
    let asked = Instant::now();
    root.stop().await;
    assert!(asked.elapsed() >= 2 * SECOND && asked.elapsed() < 3 * SECOND);
    assert_eq!(diary.take(), ["stop a"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_within_its_time_finishes_what_it_handles_before_it_stops() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::HangFor(4 * SECOND)).unwrap();
    tokio::task::yield_now().await;
    root.stop().await;
    assert_eq!(diary.count("stop a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removed_child_stops_properly_and_its_name_is_free() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    root.remove("a").await;
    assert_eq!(diary.take(), ["try a", "start a", "stop a"]);
    assert_eq!(root.alive(SECOND).await.unwrap(), []);
    root.remove("a").await;
    root.add(probe("a", &a, &diary)).await.unwrap();
    assert_eq!(count(&a).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_removed_during_a_pending_backoff_never_comes_back() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::Panic).unwrap();
    until(|| a.is_vacant()).await;
    assert_eq!(root.alive(SECOND).await.unwrap(), [("a".into(), ChildState::Waiting { failures: 1 })]);
    root.remove("a").await;
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(diary.take(), ["try a", "start a"]);
    assert_eq!(root.alive(SECOND).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_removed_child_does_not_revive_its_namesake() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::Panic).unwrap();
    until(|| a.is_vacant()).await;
    root.remove("a").await;
    root.add(probe("a", &a, &diary)).await.unwrap();
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(diary.count("start a"), 2, "the first and its namesake, once each");
}

#[tokio::test(start_paused = true)]
async fn a_removal_wins_over_a_restart_that_was_already_due_behind_it() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::Panic).unwrap();
    until(|| a.is_vacant()).await;
    // A start that hangs holds up the mailbox; behind it come the removal, a namesake, and then the restart.
    let namesake = starting("a", &a, &diary, |_| Start::Fails);
    let (_, (), added) = tokio::join!(
        root.add(never_starts("b").restart(Restart::Never)),
        root.remove("a"),
        root.add(namesake)
    );
    added.unwrap();
    assert_eq!(root.alive(SECOND / 100).await.unwrap(), [("a".into(), ChildState::Waiting { failures: 1 })]);
    assert_eq!(diary.take(), ["try a", "start a", "try a"], "the due restart started neither of the two");
}

#[tokio::test(start_paused = true)]
async fn a_slow_removal_holds_up_nobody_else_and_is_awaited_by_each_who_asked() {
    let (a, b, diary) = (Address::vacant(), Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::HangFor(4 * SECOND)).unwrap();
    tokio::task::yield_now().await;
    let (one, two) = (root.clone(), root.clone());
    let both = tokio::spawn(async move { tokio::join!(one.remove("a"), two.remove("a")) });
    tokio::task::yield_now().await;
    assert_eq!(root.alive(SECOND / 2).await.unwrap(), [("a".into(), ChildState::Stopping)]);
    assert_eq!(a.tell(Msg::End), Err(Gone), "it takes no more");
    root.add(probe("b", &b, &diary)).await.unwrap();
    let namesake = root.add(probe("a", &a, &diary)).await;
    assert_eq!(namesake, Err(StartError::Taken { child: "a".into() }), "while the old one still runs");
    both.await.unwrap();
    assert_eq!(diary.count("stop a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_stops_during_a_removal_stops_that_child_once_and_lets_the_asker_go() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let root = root(vec![probe("a", &a, &diary)]).await;
    a.tell(Msg::HangFor(2 * SECOND)).unwrap();
    tokio::task::yield_now().await;
    let other = root.clone();
    let removal = tokio::spawn(async move { other.remove("a").await });
    tokio::task::yield_now().await;
    root.stop().await;
    removal.await.unwrap();
    assert_eq!(diary.count("stop a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_killed_from_outside_has_failed() {
    let (a, diary) = (Address::vacant(), Diary::default());
    let _root = root(vec![probe("a", &a, &diary).restart(Restart::OnFailure)]).await;
    a.cell().unwrap().kill();
    until(|| diary.count("start a") == 2).await;
}
