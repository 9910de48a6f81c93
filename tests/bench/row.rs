//! One number a line: as a table row for people, or as one JSON object.

use serde_json::json;

/// Prints the rows of one benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) bench: &'static str,
    pub(crate) json: bool,
}

impl Rows {
    /// A number that stands alone.
    pub(crate) fn alone(&self, row: &str, n: usize, value: f64, unit: &str) {
        self.print(row, n, value, unit, None);
    }

    /// A number, and what it is measured against in the same run.
    pub(crate) fn against(&self, row: &str, n: usize, value: f64, unit: &str, floor: (&str, f64)) {
        self.print(row, n, value, unit, Some(floor));
    }

    /// What was not measured, and why.
    pub(crate) fn skipped(&self, row: &str, why: &str) {
        if self.json {
            println!("{}", json!({"bench": self.bench, "row": row, "skipped": why}));
        } else {
            println!("{:<10} {row:<42} skipped: {why}", self.bench);
        }
    }

    fn print(&self, row: &str, n: usize, value: f64, unit: &str, floor: Option<(&str, f64)>) {
        let ratio = floor.map(|(_, floor)| value / floor);
        if self.json {
            let against = floor.map(|(name, _)| name);
            let line = json!({
                "bench": self.bench, "row": row, "n": n, "value": value, "unit": unit, "against": against, "ratio": ratio
            });
            println!("{line}");
        } else {
            let against = match (floor, ratio) {
                (Some((name, _)), Some(ratio)) => format!("  {ratio:>7.2} × {name}"),
                _ => String::new(),
            };
            println!("{:<10} {row:<42} n={n:<7} {value:>10.2} {unit}{against}", self.bench);
        }
    }
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_moves_no_median() {
        assert_eq!(median(vec![2.0, 900.0, 1.0]).to_bits(), 2.0_f64.to_bits());
    }

    #[test]
    fn what_was_never_measured_is_no_number() {
        assert!(median(Vec::new()).is_nan());
    }
}
