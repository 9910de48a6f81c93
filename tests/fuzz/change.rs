//! Changes at random: of bytes, with words that mean something to who reads them, and of JSON by its structure.

use serde_json::Value;

/// Numbers that look random and are the same for the same seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero for a bound of zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    /// One of these.
    pub(crate) fn of<'a, T>(&mut self, these: &'a [T]) -> &'a T {
        &these[self.below(these.len())]
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// A range inside `length`, short more often than long.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let most = if self.below(4) == 0 { length } else { 8 };
        from..(from + self.below(most + 1)).min(length)
    }
}

/// `bytes` after some changes. `words` are pieces that mean something in this language; `other` is another good input.
pub(crate) fn bytes(random: &mut Random, bytes: &[u8], words: &[&[u8]], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        one(random, &mut bytes, words, other);
        // Inputs that only grow would make every run slower than the one before.
        bytes.truncate(300 * 1024);
    }
    bytes
}

fn one(random: &mut Random, bytes: &mut Vec<u8>, words: &[&[u8]], other: &[u8]) {
    let (at, byte) = (random.below(bytes.len() + 1), random.byte());
    match random.below(10) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 if at < bytes.len() => bytes[at] = *random.of(&[0, 1, 0x7f, 0x80, 0xc0, 0xc1, 0xff, byte]),
        3 => bytes.insert(at, byte),
        4 => drop(bytes.drain(random.range(bytes.len()))),
        5 => {
            let piece = bytes[random.range(bytes.len())].to_vec();
            let times = 1 << random.below(8);
            drop(bytes.splice(at..at, piece.repeat(times)));
        }
        6 => bytes.truncate(at),
        7 => {
            let piece = &other[random.range(other.len())];
            drop(bytes.splice(at..at, piece.iter().copied()));
        }
        _ => {
            let instead = at..(at + random.below(12)).min(bytes.len());
            drop(bytes.splice(instead, random.of(words).iter().copied()));
        }
    }
}

/// `value` after a change somewhere inside it.
pub(crate) fn json(random: &mut Random, value: &mut Value) {
    let within = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(values) => values.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    if within > 0 && random.below(5) > 0 {
        let at = random.below(within);
        return match value {
            Value::Object(fields) => change_field(random, fields, at),
            Value::Array(values) => change_item(random, values, at),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        };
    }
    *value = instead(random, value);
}

fn change_field(random: &mut Random, fields: &mut serde_json::Map<String, Value>, at: usize) {
    let name = fields.keys().nth(at).unwrap().clone();
    match random.below(8) {
        0 => drop(fields.remove(&name)),
        1 => {
            let value = fields[&name].clone();
            fields.insert(format!("{name}_"), value);
        }
        _ => json(random, &mut fields[&name]),
    }
}

fn change_item(random: &mut Random, values: &mut Vec<Value>, at: usize) {
    match random.below(8) {
        0 => drop(values.remove(at)),
        1 => values.push(values[at].clone()),
        2 => {
            let other = random.below(values.len());
            values.swap(at, other);
        }
        _ => json(random, &mut values[at]),
    }
}

fn instead(random: &mut Random, value: &Value) -> Value {
    match (random.below(12), value) {
        (0, _) => Value::Null,
        (1, _) => true.into(),
        (2, _) => u64::MAX.into(),
        (3, _) => i64::MIN.into(),
        (4, _) => (-0.5).into(),
        (5, _) => Value::Array(vec![value.clone(); random.below(20)]),
        (6, value) => (0..random.below(60)).fold(value.clone(), |inner, _| Value::Array(vec![inner])),
        (7, _) => serde_json::json!({ "key": value, "spec": value }),
        (8, _) => "x".repeat(1 << random.below(14)).into(),
        (_, Value::String(text)) => changed_text(random, text).into(),
        (_, other) => other.to_string().into(),
    }
}

fn changed_text(random: &mut Random, text: &str) -> String {
    const ODD: [&str; 14] = [
        "",
        "..",
        "/",
        "//",
        "\0",
        "\n",
        "\u{202e}",
        "file:",
        "directory:/",
        "unit:x.service",
        "package:-o",
        "sha256:",
        "0",
        "\u{1b}[2J",
    ];
    let at = text.floor_char_boundary(random.below(text.len() + 1));
    let (before, behind) = text.split_at(at);
    match random.below(3) {
        0 => format!("{before}{}{behind}", random.of(&ODD)),
        1 => format!("{}{behind}", random.of(&ODD)),
        _ => format!("{before}{}", random.of(&ODD)),
    }
}
