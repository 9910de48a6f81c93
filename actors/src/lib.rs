//! The runtime both daemons stand on: supervision, asking with a deadline, work off the mailbox, timers, the clock,
//! the directory, the watchdog, systemd's notifications, signals, logging, opening SQLite, and looking before a file of
//! somebody's is read or a socket is put somewhere. It knows nothing of nodes.
//!
//! # What it guarantees
//!
//! Each line is held by the test it names.
//!
//! **Messages.** A message that crashes its actor is dropped with that life, and the next one reaches the restarted
//! actor through the same address: `a_message_that_crashes_its_actor_is_dropped_and_the_next_one_reaches_the_restarted_actor`.
//! Whoever had asked is told at once: `askers_of_an_actor_that_crashes_are_told_that_their_question_was_dropped`.
//! Between two lives a message is refused, not swallowed: `an_actor_between_two_lives_is_gone_and_not_a_hole_that_swallows_messages`.
//! When the asker times out, the message is handled later all the same, its answer is dropped, and the actor lives:
//! `a_message_whose_asker_timed_out_is_still_handled_and_its_answer_harmlessly_dropped`. So a question that changes
//! something must be harmless when it is asked twice.
//!
//! **Starting.** In order, each child after the one before it is up: `children_start_in_order_and_each_after_the_one_before_is_up`.
//! A start that fails counts as a failure and is retried: `a_restart_that_fails_to_start_counts_as_a_failure_and_is_retried`.
//! If it cannot start at all, it is named: `a_child_that_cannot_start_is_named_and_those_before_it_are_stopped`.
//! Children come and go while it runs: `children_are_added_while_it_runs_and_a_name_is_taken_once`.
//!
//! **Restarting.** The wait grows, and begins again after a stable time:
//! `the_wait_before_a_restart_grows_and_begins_again_after_a_stable_time`. A crash costs the neighbours nothing:
//! `one_childs_crash_costs_the_others_nothing`. A child that was removed while it waited for its restart stays away:
//! `a_child_that_is_removed_during_a_pending_backoff_never_comes_back`. Past the limit the others are stopped in
//! reverse order, and `ended()` tells who and why: `past_the_limit_the_others_stop_in_reverse_and_the_end_says_who_and_why`.
//! Below the root that is one failure to the parent: `a_supervisor_past_its_limit_is_one_failure_to_its_parent_which_starts_it_anew`.
//!
//! **Stopping.** In reverse order, `post_stop` of each runs: `a_supervisor_stops_its_children_in_reverse_order_and_each_runs_its_post_stop`.
//! What is being handled is finished, what waits in the mailbox is dropped: `a_child_within_its_time_finishes_what_it_handles_before_it_stops`.
//! Who takes too long is killed: `a_child_that_does_not_stop_in_its_time_is_killed_and_the_rest_stop_properly`.
//!
//! **Work and time.** A panic in work is a message: `a_panic_in_work_is_a_message_and_the_actor_lives`. Work ends with
//! its handle: `work_whose_handle_is_dropped_is_cancelled_and_says_nothing`. Timers obey the paused clock:
//! `a_timer_obeys_the_paused_clock`. The keepalive goes out only while the root answers and no step is overdue:
//! `the_keepalive_is_withheld_while_the_root_does_not_answer`,
//! `the_keepalive_is_withheld_while_a_step_is_past_its_budget_and_sent_again_after`.
//!
//! **Gathering.** What is told within a while is one batch, also at the end: `what_is_told_within_a_while_is_one_batch_and_each_is_in_it_once`,
//! `what_was_gathered_is_put_away_when_the_gatherer_stops`. One that fails goes with the next:
//! `a_batch_that_fails_goes_with_the_next_one_and_that_is_said_once`.
//!
//! **The store.** A write is acknowledged only after its commit, with full sync: `a_write_is_acknowledged_only_after_its_commit`,
//! `the_writer_syncs_every_commit_in_full_and_logs_ahead`. One failing change fails alone: `one_failing_change_in_a_group_does_not_fail_its_neighbours`.
//! Reads see what was committed: `reads_see_every_committed_write`. A full queue is answered after a deadline:
//! `whoever_finds_the_queue_full_hears_busy_after_the_deadline`. One process at a time, and the other learns whose it
//! is: `a_second_process_is_refused_with_the_holders_pid_and_welcome_once_the_first_was_killed`. A missing store is not
//! made where one was expected: `a_missing_store_is_not_created_when_it_was_expected`. Each wrong file has its own name:
//! `an_empty_file_is_refused_by_its_own_name_and_left_alone`, `a_garbage_file_is_refused_by_its_own_name_and_left_alone`,
//! `a_foreign_database_is_refused_by_its_own_name_and_left_alone`, `a_newer_store_is_refused_by_its_own_name_with_both_numbers`.
//!
//! # What it does not
//!
//! A message that was delivered may still be lost: an actor that crashes takes its mailbox along. What must not be lost
//! is in the store before it is told. A handler that blocks its thread can be neither stopped nor killed. Mailboxes have
//! no bound; whoever lets strangers in bounds them at the edge.

pub mod address;
pub mod clock;
pub mod crash;
pub mod database;
pub mod directory;
pub mod file;
pub mod gather;
pub mod log;
pub mod privacy;
pub mod signal;
pub mod socket;
pub mod supervisor;
pub mod systemd;
pub mod timer;
pub mod watchdog;
pub mod work;

#[cfg(test)]
mod tests;

pub use ractor;

pub use address::{Address, AskError, Gone, Reply, answer};
pub use supervisor::{Child, ChildState, Ended, Limits, Restart, StartError, Supervisor};
