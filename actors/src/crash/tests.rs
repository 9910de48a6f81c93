use super::*;

#[test]
fn a_step_hands_on_what_its_work_came_to() {
    assert_eq!(Step::named("a").take(|| 7), 7);
    assert_eq!(Step::named("a").take(|| Err::<(), _>("full")), Err("full"));
    assert_eq!(Step::named("a.b").name(), "a.b");
}

#[tokio::test]
async fn a_step_that_is_waited_for_hands_on_what_it_came_to() {
    assert_eq!(Step::named("a").awaited(async { 7 }).await, 7);
}

#[cfg(feature = "crash-points")]
#[test]
fn a_point_is_named_with_the_time_that_is_meant_and_else_the_first() {
    assert_eq!(armed::parse("record.after"), ("record.after", 1));
    assert_eq!(armed::parse("record.after:3"), ("record.after", 3));
    assert_eq!(armed::parse("record.after:0"), ("record.after:0", 1));
    assert_eq!(armed::parse("record:x"), ("record:x", 1));
}
