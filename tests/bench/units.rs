//! Units: what a pass over 200 units that are as declared costs the daemon, beside one `systemctl show` of the same units
//! in the same loop, on a machine under a real service manager. Needs root and built programs, as the lab does.

use std::time::Instant;

use tenure_tests::lab::{Base, Machine, Pair};

/// How many units.
pub const UNITS: usize = 200;
const ROUNDS: usize = 9;
const SHOWN: &str = "--property=Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload";

/// What was measured on one machine: medians, in milliseconds.
pub struct Measured {
    /// Which system it was.
    pub system: &'static str,
    /// `systemctl show` of all units.
    pub show: f64,
    /// A whole quiet pass of the daemon over the same.
    pub pass: f64,
}

/// Runs the loop on Debian 12 and on Debian 13.
pub fn measure() -> [Measured; 2] {
    [("debian 12", Base::Bookworm), ("debian 13", Base::Trixie)].map(|(system, base)| on(system, base))
}

fn on(system: &'static str, base: Base) -> Measured {
    let pair = Pair::raised_on("bench_units", base);
    let names: Vec<String> = (0..UNITS).map(|at| format!("u{at}.service")).collect();
    for name in &names {
        let text = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
        pair.b.write(&format!("/etc/systemd/system/{name}"), text);
    }
    // Up already: bringing two hundred units up is not what is measured.
    let all = names.join(" ");
    let _ = pair.b.sh(&format!("systemctl daemon-reload && systemctl --quiet enable --now {all}")).must();
    let unit = |name: &String| format!("[[unit]]\nname = \"{name}\"\nenabled = true\nrunning = true\n");
    pair.module(&names.iter().map(unit).collect::<String>());
    let _ = pair.declare(&[]).must();
    pair.wait_for_applied(1);
    pair.wait("a pass has nothing to do", |pair| pair.status()["last"]["counts"]["unchanged"] == UNITS);
    let (mut shows, mut passes) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        shows.push(show(&pair.b, &names));
        let before = pair.status()["last"]["pass"].clone();
        pair.wait("another pass is done", |pair| pair.status()["last"]["pass"] != before);
        passes.push(pair.status()["last"]["took_ms"].as_f64().unwrap_or(f64::NAN));
    }
    Measured { system, show: median(shows), pass: median(passes) }
}

/// How long it takes inside, without what it costs to get in.
fn show(machine: &Machine, names: &[String]) -> f64 {
    let enter = |line: &str| {
        let began = Instant::now();
        let _ = machine.sh(line).must();
        began.elapsed().as_secs_f64() * 1000.0
    };
    let whole = enter(&format!("systemctl show {SHOWN} -- {} >/dev/null", names.join(" ")));
    whole - enter("true")
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
