//! What shows that an input meets a code, and what only looks as if it did.

use super::makers::Makers;
use super::part::Text;
use super::{Reached, reached_in};

/// Whether the test `it` of a crate with these files reaches `store_full`.
fn reaches(files: &[&str]) -> bool {
    let files = files.iter().enumerate();
    let texts =
        files.map(|(at, text)| Text { place: format!("{at}.rs"), text: (*text).to_owned(), all_tests: true });
    let mut reached = Reached::new();
    reached_in(texts.collect(), &["store_full".to_owned()].into(), &Makers::read(), &mut reached);
    !reached.is_empty()
}

#[test]
fn a_test_that_gives_something_in_and_compares_the_code_reaches_it() {
    for test in [
        "#[test] fn it() { let refusal = declare(large()).unwrap_err(); assert_eq!(refusal.code, \"store_full\"); }",
        "#[test] fn it() { assert!(refusal(declare()).is(\"store_full\")); }",
        "#[test] fn it() { assert!(matches!(declare(), Err(refused) if refused.is(\"store_full\"))); }",
        "#[test] fn it() { for (folder, code) in [(large(), \"store_full\")] { assert_eq!(declare(folder).code, code); } }",
        "const CASES: [&str; 1] = [\"store_full\"]; #[test] fn it() { refused(CASES); }",
        "fn says(ran: &Ran, code: &str) { assert!(ran.err.contains(code)); } #[test] fn it() { says(&run(), \"store_full\"); refusal(); }",
        // The error itself is what is expected.
        "#[test] fn it() { let is = declare(); assert_eq!(is, Err(StoreError::Full)); assert_eq!(refusal(is).code, \"store_full\"); }",
    ] {
        assert!(reaches(&[test]), "{test}");
    }
}

#[test]
fn a_test_that_makes_the_refusal_or_any_error_itself_reaches_nothing() {
    for test in [
        "#[test] fn it() { let refusal = Refusal::new(\"store_full\", h, m, d); assert_eq!(refusal.code, \"store_full\"); }",
        "#[test] fn it() { assert!(Refusal { code: \"store_full\".to_owned(), ..x }.is(\"store_full\")); }",
        "#[test] fn it() { assert_eq!(StoreError::Full.refusal().code, \"store_full\"); }",
        "#[test] fn it() { for (error, code) in [(StoreError::Full, \"store_full\")] { assert_eq!(error.code(), code); } }",
        "#[test] fn it() { let refusal = trouble(std::io::ErrorKind::StorageFull.into()); assert!(refusal.is(\"store_full\")); }",
        "fn made() -> StoreError { StoreError::from(DatabaseError::Full) } #[test] fn it() { assert_eq!(made().code(), \"store_full\"); }",
        "fn refused(code: &str) -> Refusal { Refusal::new(code, h, m, d) } #[test] fn it() { assert!(refused(\"store_full\").is(\"store_full\")); }",
    ] {
        assert!(!reaches(&[test]), "{test}");
    }
    let fake = "pub fn answers() -> Refusal { Refusal::new(\"store_full\", h, m, d) }";
    let test = "#[test] fn it() { let refusal = ask(fake::answers()); assert!(refusal.is(\"store_full\")); }";
    assert!(!reaches(&[fake, test]), "made by a fake of another file");
}

#[test]
fn a_code_that_stands_there_as_another_word_is_not_expected() {
    let test = "#[test] fn it() { std::fs::create_dir(at(\"store_full\")).unwrap(); assert!(refusal().is(\"other\")); }";
    assert!(!reaches(&[test]));
}
