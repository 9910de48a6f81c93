//! What a store's file says of itself before SQLite is let at it: that it is a database, ours, and as long as it says.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::Opening;
use super::lock::beside;
use super::open::OpenError;

/// Read the header by hand: SQLite would take an empty file for a fresh database, and might write to a foreign one to
/// finish what its owner had begun. It is read before any connection is open, since closing a file gives up SQLite's
/// own locks on it.
pub(super) fn recognise(opening: &Opening<'_>) -> Result<(), OpenError> {
    let path = opening.path.to_owned();
    let mut header = Vec::with_capacity(HEADER);
    let mut read = File::open(&path).map_err(|error| OpenError::of_file(&path, error))?.take(100);
    read.read_to_end(&mut header).map_err(|error| OpenError::of_file(&path, error))?;
    if header.is_empty() {
        return Err(OpenError::Empty { path });
    }
    let id = header.get(APPLICATION_ID).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    match id {
        Some(_) if !header.starts_with(MAGIC) => Err(OpenError::NotADatabase { path }),
        None => Err(OpenError::NotADatabase { path }),
        Some(found) if found != opening.application_id => Err(OpenError::NotOurs { path, found }),
        Some(_) => measure(opening.path, &header),
    }
}

/// SQLite takes what is cut off in its last page, or all of it in the first one, for a smaller database. While there
/// is a log, the file may lag behind it, and the check of the pages decides.
fn measure(path: &Path, header: &[u8]) -> Result<(), OpenError> {
    let length = |path: &Path| std::fs::metadata(path).map(|found| found.len());
    if length(&beside(path, "-wal")).is_ok_and(|log| log > 0) {
        return Ok(());
    }
    let number = |at: std::ops::Range<usize>| {
        header.get(at).unwrap_or_default().iter().fold(0, |sum, byte| sum * 256 + u64::from(*byte))
    };
    // A page of 64 KiB does not fit the two bytes, and is written as one.
    let page = match number(PAGE_SIZE) {
        1 => 65536,
        size => size,
    };
    let (should, is) = (page * number(PAGES), length(path).map_err(|error| OpenError::of_file(path, error))?);
    if is < should {
        let what = format!("it is cut off: {is} bytes of {should} are there");
        return Err(OpenError::Damaged { path: path.to_owned(), what });
    }
    Ok(())
}

const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const PAGE_SIZE: std::ops::Range<usize> = 16..18;
const PAGES: std::ops::Range<usize> = 28..32;
const APPLICATION_ID: std::ops::Range<usize> = 68..72;
