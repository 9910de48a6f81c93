//! What the store's answers say of the store: each change of its state is one line in the log and one in the status,
//! however many answers there are. The states are pure; [`Health`] remembers the present one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_actors::systemd;
use tenure_protocol::refusal::Explain as _;
use tokio::time::Instant;

use crate::store::StoreError;

/// How the store is, as far as its last answers show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum State {
    /// It takes changes.
    #[default]
    Well,
    /// It does not; why, and since when.
    Unwell(StoreError, Instant),
}

/// What is worth a line.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Unwell(StoreError),
    Well(Duration),
}

impl State {
    /// After an answer. What a statement or a closing store says is no state of the store; damage stays until a start
    /// finds none, since the next change may well touch another page.
    fn after(&self, answer: Result<(), &StoreError>, now: Instant) -> Option<(Self, Turn)> {
        match (self, answer) {
            (_, Err(StoreError::Fault(_) | StoreError::Closed)) => None,
            (Self::Unwell(StoreError::Damaged, _), _) | (Self::Well, Ok(())) => None,
            (Self::Unwell(before, _), Err(error)) if before == error => None,
            (Self::Well, Err(error)) => Some((Self::Unwell(error.clone(), now), Turn::Unwell(error.clone()))),
            (Self::Unwell(_, since), Err(error)) => {
                Some((Self::Unwell(error.clone(), *since), Turn::Unwell(error.clone())))
            }
            (Self::Unwell(_, since), Ok(())) => {
                Some((Self::Well, Turn::Well(now.saturating_duration_since(*since))))
            }
        }
    }
}

/// The present state. Shared by all who write.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

impl Health {
    /// A change was answered so.
    pub(super) fn saw<T>(&self, answer: &Result<T, StoreError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((next, turn)) = state.after(answer.as_ref().map(drop), Instant::now()) else { return };
        *state = next;
        drop(state);
        tell(&turn);
    }

    /// Whether the last change was taken.
    pub(super) fn is_well(&self) -> bool {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) == State::Well
    }
}

fn tell(turn: &Turn) {
    match turn {
        Turn::Unwell(error) => {
            let refusal = error.refusal();
            let (code, remedy) = (&refusal.code, &refusal.remedy);
            let means = "nothing can be changed until it is well; what is known is still shown, and machines are held as they are";
            tracing::error!(%code, %means, "do" = %remedy, "{}", refusal.happened);
            systemd::status(&format!("{}: {}", refusal.code, refusal.happened));
        }
        Turn::Well(after) => {
            tracing::info!(after = %format!("{} s", after.as_secs()), "the store takes changes again");
            systemd::status("the store takes changes again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // case: O-70
    #[test]
    fn each_turn_of_the_stores_state_is_one_line_and_an_answer_that_is_no_state_none() {
        let now = Instant::now();
        let later = now + Duration::from_secs(7);
        let (full, damaged) = (StoreError::Full, StoreError::Damaged);
        let fault = StoreError::Fault("a constraint".to_owned());
        assert_eq!(State::Well.after(Ok(()), now), None);
        assert_eq!(State::Well.after(Err(&fault), now), None);
        let (state, turn) = State::Well.after(Err(&full), now).unwrap();
        assert_eq!(turn, Turn::Unwell(StoreError::Full));
        assert_eq!(state.after(Err(&full), later), None, "said once, not at every answer");
        assert_eq!(state.after(Err(&StoreError::Closed), later), None);
        let (well, turn) = state.after(Ok(()), later).unwrap();
        assert_eq!((well, turn), (State::Well, Turn::Well(Duration::from_secs(7))));
        let (worse, turn) = state.after(Err(&damaged), later).unwrap();
        assert_eq!(turn, Turn::Unwell(StoreError::Damaged));
        assert_eq!(worse.after(Ok(()), later), None, "a change beside the damage heals nothing");
    }
}
