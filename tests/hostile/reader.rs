//! Reading what an attacked side answers, until it closes.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

/// What came until the other side closed, and after how long it did. Panics when it does not close `within`.
pub(crate) async fn until_closed<S: AsyncRead + Unpin>(
    stream: &mut S,
    within: Duration,
    attack: &str,
) -> (Vec<u8>, Duration) {
    let (began, mut came, mut piece) = (Instant::now(), Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = timeout_at(began + within, stream.read(&mut piece)).await;
        match read.unwrap_or_else(|_| panic!("{attack}: not closed within {within:?}")) {
            // A reset is an end as well: there was more of ours than it cared to read.
            Ok(0) | Err(_) => return (came, began.elapsed()),
            Ok(read) => came.extend(&piece[..read]),
        }
    }
}
