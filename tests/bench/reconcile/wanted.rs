//! What of `reconcile` is wanted, by the words after it. Pure; what nothing is measured for is refused by name.

/// The numbers of files.
pub(crate) const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// Parts that are measured once for each number of files.
pub(crate) const SIZED: [&str; 7] =
    ["first", "held", "repair", "process", "allocations", "resident", "peers"];

/// Parts that have numbers of their own.
pub(crate) const UNSIZED: [&str; 4] = ["ready", "packages", "units", "host"];

/// Which parts, and for which numbers of files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) sizes: Vec<usize>,
    parts: Vec<String>,
}

impl Wanted {
    /// Takes the words, or says what is wrong with them. Where no part is named all are meant; a number alone means those
    /// that go by it.
    pub(crate) fn of(words: &[&str]) -> Result<Self, String> {
        let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let named: Vec<&str> = words.iter().copied().filter(|word| word.parse::<usize>().is_err()).collect();
        let is_known = |word: &&str| SIZED.contains(word) || UNSIZED.contains(word);
        if numbers.iter().any(|n| !SIZES.contains(n)) || !named.iter().all(is_known) {
            let parts = [SIZED.as_slice(), &UNSIZED].concat().join(", ");
            return Err(format!(
                "nothing is measured for {words:?}; the numbers of files are {SIZES:?}, the parts {parts}"
            ));
        }
        let parts = if !named.is_empty() {
            named
        } else if numbers.is_empty() {
            [SIZED.as_slice(), &UNSIZED].concat()
        } else {
            SIZED.to_vec()
        };
        if !numbers.is_empty() && !parts.iter().any(|part| SIZED.contains(part)) {
            return Err(format!("{} goes by no number of files", parts.join(", ")));
        }
        let is_sized = parts.iter().any(|part| SIZED.contains(part));
        let sizes = SIZES.into_iter().filter(|n| is_sized && (numbers.is_empty() || numbers.contains(n)));
        Ok(Self { sizes: sizes.collect(), parts: parts.into_iter().map(str::to_owned).collect() })
    }

    /// Whether this part is.
    pub(crate) fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|wanted| wanted == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_means_every_part_at_every_number() {
        let all = Wanted::of(&[]).unwrap();
        assert_eq!(all.sizes, SIZES);
        assert!(SIZED.iter().chain(&UNSIZED).all(|part| all.has(part)));
    }

    #[test]
    fn a_number_alone_means_the_parts_that_go_by_it() {
        let some = Wanted::of(&["1000"]).unwrap();
        assert_eq!(some.sizes, [1_000]);
        assert!(some.has("held") && !some.has("units"));
    }

    #[test]
    fn a_part_that_goes_by_no_number_makes_no_files() {
        let units = Wanted::of(&["units"]).unwrap();
        assert!(units.sizes.is_empty() && units.has("units") && !units.has("held"));
        assert_eq!(Wanted::of(&["units", "held", "100"]).unwrap().sizes, [100]);
    }

    #[test]
    fn a_number_or_a_part_that_nothing_is_measured_for_is_refused_by_name() {
        for words in
            [&["7"][..], &["holds"], &["held", "99999999999999999999999"], &["-1"], &[""], &["units", "7"]]
        {
            assert!(Wanted::of(words).unwrap_err().contains("nothing is measured for"), "{words:?}");
        }
        assert!(Wanted::of(&["100", "units"]).unwrap_err().contains("no number of files"));
    }
}
