//! Each daemon is killed before and after each of its durable steps, on the whole way from the first start to
//! retirement (H-09, O-64). However often it dies, and whoever of the two: the way ends where it ends when nobody dies,
//! with nothing left over, nothing done twice, and nothing lost that was answered.

mod end;
mod machine;
mod mishap;
mod way;
mod world;

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use tenure_actors::crash::Step;
use tenure_controlplane::steps as control;
use tenure_host::steps as host;

use end::End;
use way::Stretch;
use world::{Order, Side, World};

/// The points of each stretch, in the order in which they are first passed.
type Points = Vec<(Stretch, Vec<String>)>;

/// Goes the whole way with nobody dying, and tells which points are passed on it.
fn go_well(side: Side) -> (Points, End) {
    let mut world = World::new(side);
    let go = |stretch: Stretch| {
        let log = world.sandbox.at(&format!("{stretch:?}.points"));
        world.go(stretch, Order::Tell(&log));
        (stretch, passed(&log))
    };
    let mut points: Points = Stretch::of(side).into_iter().map(go).collect();
    let elsewhere: BTreeSet<String> = points
        .iter()
        .filter(|(stretch, _)| !stretch.is_a_detour())
        .flat_map(|(_, points)| points.iter().cloned())
        .collect();
    for (_, points) in points.iter_mut().filter(|(stretch, _)| stretch.is_a_detour()) {
        points.retain(|point| !elsewhere.contains(point));
    }
    (points, world.end())
}

fn passed(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut seen = BTreeSet::new();
    text.lines().filter(|line| seen.insert(line.to_owned())).map(str::to_owned).collect()
}

/// Each step has its name once, all of them are passed, and none besides.
fn assert_complete(steps: &[Step], points: &Points) {
    let mut named = BTreeSet::new();
    for step in steps {
        for side in ["before", "after"] {
            assert!(named.insert(format!("{}.{side}", step.name())), "{} is named twice", step.name());
        }
    }
    let passed: BTreeSet<String> = points.iter().flat_map(|(_, points)| points.iter().cloned()).collect();
    let never: Vec<_> = named.difference(&passed).collect();
    assert!(never.is_empty(), "these points are never passed on the way: {never:?}");
    let unlisted: Vec<_> = passed.difference(&named).collect();
    assert!(unlisted.is_empty(), "these points are passed and not in the list: {unlisted:?}");
}

/// Which points somebody died at.
type Deaths = Mutex<BTreeSet<String>>;

/// One journey: on each stretch it dies at one point, at most.
struct Journey {
    deaths: Vec<(Stretch, Option<String>)>,
    twice: bool,
}

/// As many journeys as the stretch with the most points has, so that each point of each stretch has its death.
fn journeys(points: &Points) -> VecDeque<Journey> {
    let most = points.iter().map(|(_, points)| points.len()).max().unwrap_or(0);
    let journey = |at: usize| Journey {
        deaths: points.iter().map(|(stretch, points)| (*stretch, points.get(at).cloned())).collect(),
        twice: at / 2 % 2 == 1,
    };
    (0..most).map(journey).collect()
}

fn go_dying(side: Side, journey: &Journey, deaths: &Deaths, well: &End) {
    let mut world = World::new(side);
    for (stretch, point) in &journey.deaths {
        let order = match point {
            None if stretch.is_a_detour() => continue,
            None => Order::Live,
            Some(point) if journey.twice => Order::DieTwice(point),
            Some(point) => Order::Die(point),
        };
        eprintln!("{side:?} {stretch:?} {order:?}");
        world.go(*stretch, order);
        // What is passed for its own sake, as the next pass is, may come after all is done that was to be done.
        if let Some(point) = point.as_ref().filter(|_| world.has_died()) {
            deaths.lock().unwrap().insert(point.clone());
        }
    }
    let end = world.end();
    assert_eq!(&end, well, "a death left a trace");
}

/// So many journeys at the same time: each mostly waits.
const AT_ONCE: usize = 4;

fn killed_at_every_step(side: Side, steps: &[Step]) {
    let (points, well) = go_well(side);
    assert_complete(steps, &points);
    let waiting = Mutex::new(journeys(&points));
    let (failed, deaths) = (Mutex::new(Vec::new()), Deaths::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(journey) = { waiting.lock().unwrap().pop_front() } {
                    if catch_unwind(AssertUnwindSafe(|| go_dying(side, &journey, &deaths, &well))).is_err() {
                        failed.lock().unwrap().push(journey.deaths);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} journeys did not end well: {failed:#?}", failed.len());
    let named = points.into_iter().flat_map(|(_, points)| points).collect::<BTreeSet<_>>();
    assert_eq!(deaths.into_inner().unwrap(), named, "nobody died at some point");
}

// rule: H-09
// rule: N-03
// rule: X-11
#[test]
fn a_host_that_is_killed_before_or_after_any_step_ends_where_it_would_have_ended() {
    killed_at_every_step(Side::Host, &host::STEPS);
}

// rule: X-11
// case: O-52
// case: O-64
#[test]
fn a_control_plane_that_is_killed_before_or_after_any_step_loses_nothing_that_it_answered() {
    killed_at_every_step(Side::Control, &control::STEPS);
}

#[test]
fn a_program_that_is_shipped_does_not_know_how_to_be_killed() {
    let knows = |program: &Path| {
        let bytes = std::fs::read(program).unwrap();
        bytes.windows(b"TENURE_CRASH".len()).any(|some| some == b"TENURE_CRASH")
    };
    for program in ["tenure", "tenure-host", "tenure-control"] {
        assert!(!knows(&tenure_tests::program::folder().join(program)), "{program} can be told to die");
    }
    for program in [world::PROGRAMS.host, world::PROGRAMS.control] {
        assert!(knows(Path::new(program)), "{program} cannot be told to die, so the search finds nothing");
    }
}

#[test]
fn no_step_of_a_machine_has_the_name_of_another() {
    let names: BTreeSet<_> =
        host::STEPS.iter().chain(&host::STEPS_OF_A_MACHINE).map(|step| step.name()).collect();
    assert_eq!(names.len(), host::STEPS.len() + host::STEPS_OF_A_MACHINE.len());
}
