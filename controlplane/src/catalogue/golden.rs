//! Golden refusals: each is compared with a file beside this one. `BLESS=1` writes the files anew.

use std::path::PathBuf;

use tenure_protocol::refusal::Refusal;

/// Compares `refusal` with `golden/NAME.txt`, and says which words differ.
pub(super) fn check(name: &str, refusal: &Refusal) {
    let Refusal { code, happened, means, remedy } = refusal;
    let text = format!("code: {code}\nhappened: {happened}\nmeans: {means}\ndo: {remedy}\n");
    let path = place(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{} differs; if this is meant, run the tests with BLESS=1", path.display());
}

/// Every golden refusal there is, by name.
pub(super) fn names() -> Vec<String> {
    let files = std::fs::read_dir(place("x").parent().unwrap()).unwrap();
    files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/catalogue/golden").join(format!("{name}.txt"))
}
