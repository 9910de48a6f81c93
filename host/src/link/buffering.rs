//! The link opens, and nothing arrives on it: what something in between does that wants more bytes before it passes any
//! on (O-55). A word of its own, since a person looks for it elsewhere than for a control plane that is down.

use tenure_protocol::refusal::Refusal;

/// Its code.
pub const BUFFERING: &str = "buffering";

/// What happened, before the detail.
pub(super) const HAPPENED: &str = "the link opens but nothing arrives: something in between is buffering";

/// What it means.
pub(super) const MEANS: &str = "what both sides say is held back by a proxy, or the control plane is too busy to answer; nothing is lost by it, and \
     this machine goes on holding what it was last told";

/// What to do.
pub(super) const REMEDY: &str = "have whatever is in between pass the port on as plain TCP, without buffering or inspection; where nothing is in \
     between, look at the control plane's log";

/// As it is shown, with what was seen.
pub(super) fn buffering(seen: &str) -> Refusal {
    Refusal::new(BUFFERING, format!("{HAPPENED} ({seen})"), MEANS, REMEDY)
}
