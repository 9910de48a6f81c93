//! Renders text: strict, bounded, without a loader, and the same text for the same values.

use std::io::{self, Write};
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{
    AutoEscape, Environment, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter,
};

/// Instructions one text may take: some hundred thousand lines of output. 64 bytes that are made on the way cost as much
/// as one, so that a string that is doubled again and again ends at 128 MiB.
const FUEL: u64 = 2_000_000;
/// Bytes one text may become.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The template language, set up once for a node.
pub(super) struct Engine {
    environment: Environment<'static>,
}

/// Why a text was not rendered.
#[derive(Debug)]
pub(super) struct Fault {
    /// The bytes of the template it is about, where known.
    pub(super) span: Option<Range<usize>>,
    /// The line of the template it is about, where known.
    pub(super) line: Option<usize>,
    /// A value that is not there was used.
    pub(super) is_undefined: bool,
    /// Which kind of fault, without any value.
    pub(super) kind: String,
    /// What is wrong in full.
    pub(super) said: String,
}

impl Engine {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_formatter(format_value);
        environment.set_fuel(Some(FUEL));
        // Without it errors have no place.
        environment.set_debug(true);
        if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
            environment.set_syntax(syntax);
        }
        Self { environment }
    }

    /// `text` with these values. Text without a brace is returned as it is.
    pub(super) fn render(&self, text: &str, values: &Value) -> Result<String, Fault> {
        if !text.contains('{') {
            return Ok(text.to_owned());
        }
        let mut out = Bounded::default();
        let template = self.environment.template_from_str(text).map_err(Fault::from)?;
        let rendered = template.render_captured_to(values.clone(), &mut out).map(drop);
        if out.is_full {
            let said = format!("it becomes longer than {MOST_BYTES} bytes");
            return Err(Fault { span: None, line: None, is_undefined: false, kind: said.clone(), said });
        }
        rendered.map_err(Fault::from)?;
        String::from_utf8(out.bytes).map_err(|_| Fault {
            span: None,
            line: None,
            is_undefined: false,
            kind: "not text".to_owned(),
            said: "it becomes something that is not text".to_owned(),
        })
    }
}

/// Truth values stand in a configuration as they stand in TOML, not as the template language would print them.
fn format_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), minijinja::Error> {
    let text = match (value.kind(), value.is_true()) {
        (ValueKind::Bool, true) => "true",
        (ValueKind::Bool, false) => "false",
        _ => return escape_formatter(out, state, value),
    };
    out.write_str(text).map_err(|_| minijinja::Error::from(ErrorKind::WriteFailure))
}

impl From<minijinja::Error> for Fault {
    fn from(error: minijinja::Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::OutOfFuel => "it takes too many steps".to_owned(),
            other => other.to_string(),
        };
        let said = match error.detail() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind.clone(),
        };
        Self {
            span: error.range(),
            line: error.line(),
            is_undefined: error.kind() == ErrorKind::UndefinedError,
            kind,
            said,
        }
    }
}

/// Output that stops at a bound.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(more.len()) > MOST_BYTES {
            self.is_full = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
