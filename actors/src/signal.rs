//! Being asked to stop, by SIGTERM or SIGINT. The first is an answer to wait for; a second one means that the person
//! will not wait any longer, so it ends the process at once with the status a shell expects (128 + the signal).

use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(test)]
mod tests;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Wait until somebody asks the process to stop, and say which signal it was. From the first poll on, the signals no
/// longer kill the process; after the first one, the next kills it without waiting for anything.
pub async fn shutdown_asked() -> &'static str {
    let (mut terminate, mut interrupt) =
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
            (Err(error), _) | (_, Err(error)) => {
                // Without a handler the default holds: the signal ends the process, which is what was asked.
                tracing::warn!(%error, "cannot listen for signals: a signal will end the process at once");
                return std::future::pending().await;
            }
        };
    let (name, _) = next(&mut terminate, &mut interrupt).await;
    tokio::spawn(async move {
        let (name, number) = next(&mut terminate, &mut interrupt).await;
        tracing::warn!(signal = name, "asked to stop a second time: ending at once");
        std::process::exit(128 + number);
    });
    name
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) -> (&'static str, i32) {
    tokio::select! {
        Some(()) = terminate.recv() => ("SIGTERM", SIGTERM),
        Some(()) = interrupt.recv() => ("SIGINT", SIGINT),
        else => std::future::pending().await,
    }
}
