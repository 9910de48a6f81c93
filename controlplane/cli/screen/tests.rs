use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// What a command wrote on one side.
#[derive(Clone, Default)]
pub(crate) struct Written(Rc<RefCell<Vec<u8>>>);

impl Written {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Failing(ErrorKind);

impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(self.0.into())
    }
}

fn screen(json: bool, width: Option<u16>, out: Box<dyn Write>, err: Box<dyn Write>) -> Screen {
    Screen { out, err, json, out_closed: false, width, out_colour: false, bars: false }
}

/// A screen whose both sides are kept: stdout, stderr.
pub(crate) fn kept(json: bool, width: Option<u16>) -> (Screen, Written, Written) {
    let (out, err) = (Written::default(), Written::default());
    (screen(json, width, Box::new(out.clone()), Box::new(err.clone())), out, err)
}

/// A screen whose stdout nobody reads any more.
pub(crate) fn with_a_closed_pipe() -> Screen {
    screen(false, None, Box::new(Failing(ErrorKind::BrokenPipe)), Box::new(Written::default()))
}

#[test]
fn a_reader_that_closed_the_pipe_ends_the_output_and_nothing_else() {
    let mut screen = with_a_closed_pipe();
    screen.print("one\n").unwrap();
    screen.print("two\n").unwrap();
    assert!(screen.is_closed());
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let mut screen =
        screen(false, None, Box::new(Failing(ErrorKind::StorageFull)), Box::new(std::io::sink()));
    let trouble = screen.print("one\n").unwrap_err();
    assert_eq!((trouble.exit, trouble.refusal.code.as_str()), (Exit::OurFault, "our_fault"));
}

fn refused() -> Trouble {
    tenure_protocol::refusal::Refusal::new(
        "unknown_node",
        "there is no node edgy-1; did you mean edge-1",
        "nothing was done",
        "run `tenure nodes` to see the names",
    )
    .into()
}

// case: O-68
#[test]
fn a_refusal_says_what_happened_what_it_means_and_what_to_do_on_stderr() {
    let (mut screen, out, err) = kept(false, None);
    assert_eq!(screen.trouble(&refused()).number(), 3);
    assert_eq!(out.text(), "");
    assert_eq!(
        err.text(),
        "refused: unknown_node
  what happened  there is no node edgy-1; did you mean edge-1
  what it means  nothing was done
  what to do     run `tenure nodes` to see the names
"
    );
}

#[test]
fn for_programs_a_refusal_is_an_object_on_stdout_as_well() {
    let (mut screen, out, err) = kept(true, None);
    screen.trouble(&refused());
    assert!(err.text().starts_with("refused: unknown_node\n"));
    let value: Value = serde_json::from_str(&out.text()).unwrap();
    assert_eq!(
        value,
        json!({ "refusal": {
            "code": "unknown_node",
            "happened": "there is no node edgy-1; did you mean edge-1",
            "means": "nothing was done",
            "do": "run `tenure nodes` to see the names",
        }})
    );
}

#[test]
fn every_way_to_end_has_the_exit_status_of_the_contract() {
    let all = [
        (Exit::Done, 0),
        (Exit::OurFault, 1),
        (Exit::Usage, 2),
        (Exit::Refused, 3),
        (Exit::Failed, 4),
        (Exit::Outstanding, 5),
        (Exit::NothingMatched, 6),
    ];
    for (exit, number) in all {
        assert_eq!(exit.number(), number);
    }
}
