//! One target: how often, from which seed, and what is said of an input that breaks something.

use std::time::{Duration, Instant};

use crate::change::Random;

/// Nothing that is read takes this long; a slow machine under load has room in it.
const NEVER_LONGER: Duration = Duration::from_secs(10);

/// Runs `one` as often as was asked, or `usually` times. Each input comes from a number of its own, which is named when
/// it breaks something.
pub(crate) fn run(usually: u64, mut one: impl FnMut(&mut Random)) {
    let iterations = number("TENURE_FUZZ_ITERATIONS").unwrap_or(usually);
    let seed = number("TENURE_FUZZ_SEED").unwrap_or(1);
    let mut longest = Duration::ZERO;
    for iteration in 0..iterations {
        let from = seed.wrapping_add(iteration);
        let said = Said(from);
        let began = Instant::now();
        one(&mut Random::new(from));
        let took = began.elapsed();
        assert!(took < NEVER_LONGER, "it took {took:?}");
        longest = longest.max(took);
        drop(said);
    }
    println!("{iterations} inputs from seed {seed}; the longest took {longest:?}");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Says on a panic how to have the same input again.
struct Said(u64);

impl Drop for Said {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again: TENURE_FUZZ_SEED={} TENURE_FUZZ_ITERATIONS=1 tests/run fuzz", self.0);
        }
    }
}
