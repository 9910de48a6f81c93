//! Doing with units what was decided, for many at once: first all that changes by what links they are found, then, once
//! the service manager has read those, all that begins and ends them, then the masks. So however many units are enabled,
//! it reads its files once for all. Whether anything worked is seen by whoever looks afterwards.

use super::apply::Engine;
use super::reread::Unread;
use crate::resource::Trouble;
use crate::resource::unit::{Act, Stage};

/// One unit, by the name under which it is acted on.
pub(super) struct Task<'t> {
    pub(super) name: &'t str,
    pub(super) acts: &'t [Act],
}

impl Task<'_> {
    fn of(&self, stage: Stage) -> impl Iterator<Item = Act> {
        self.acts.iter().copied().filter(move |act| act.stage() == stage)
    }
}

/// Whether any of these acts changes a file that the service manager has to read.
pub(super) fn changes_files(acts: &[Act]) -> bool {
    acts.iter().any(|act| act.stage() != Stage::Runs)
}

impl Engine<'_> {
    /// Does all of it; answers for each unit how it went, in their order. What fails of one ends that one alone.
    pub(super) fn perform(&mut self, tasks: &[Task<'_>]) -> Vec<Result<(), Trouble>> {
        let mut said = vec![Ok(()); tasks.len()];
        for stage in [Stage::Links, Stage::Runs, Stage::Masks] {
            let begun = self.perform_stage(stage, tasks, &mut said);
            if stage == Stage::Runs || !begun.contains(&true) {
                continue;
            }
            self.unread = Unread::Something;
            if let Err(trouble) = self.reread_units() {
                let waiting = said.iter_mut().zip(begun).filter(|(said, begun)| *begun && said.is_ok());
                waiting.for_each(|(said, _)| *said = Err(trouble.clone()));
            }
        }
        said
    }

    /// Answers which of them were begun.
    fn perform_stage(&self, stage: Stage, tasks: &[Task<'_>], said: &mut [Result<(), Trouble>]) -> Vec<bool> {
        let tools = self.site.tools;
        let perform = |(task, said): (&Task<'_>, &mut Result<(), Trouble>)| {
            if said.is_err() || task.of(stage).next().is_none() {
                return false;
            }
            if tools.is_cancelled() {
                *said = Err(Trouble::cancelled());
                return false;
            }
            *said = task.of(stage).try_for_each(|act| tools.act(act, task.name));
            true
        };
        tasks.iter().zip(said).map(perform).collect()
    }
}
