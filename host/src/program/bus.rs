//! The machine's bus, as far as it is asked there: how units stand, in one call, and what there is to say of each, in a few
//! calls a unit. The connection lasts as long as the question.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;
use zbus::wire::{ObjectPath, Variant};
use zbus::{Connection, Error, connection};

/// How a unit stands, in the service manager's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its own name, by whichever it was asked for.
    pub id: String,
    /// Whether its file could be read: `loaded`, `not-found`, `masked`, …
    pub load: String,
    /// `active`, `inactive`, `failed`, …
    pub active: String,
    /// The same in detail.
    pub sub: String,
}

/// Where the bus listens, whatever the environment says.
const ADDRESS: &str = "unix:path=/run/dbus/system_bus_socket";

const SERVICE: &str = "org.freedesktop.systemd1";
const OBJECT: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Of so many units answers are waited for at the same time, up to five of each: the bus allows a connection 128.
const IN_FLIGHT: usize = 16;

/// Name, description, load, activity, the same in detail, and what the unit follows, its object and its job.
type Row<'m> =
    (&'m str, &'m str, &'m str, &'m str, &'m str, &'m str, ObjectPath<'m>, u32, &'m str, ObjectPath<'m>);

/// How units of these names stand, in their order.
pub(super) fn units(names: &[&str], within: Duration) -> Option<Vec<Listed>> {
    ask(ADDRESS, within, async |bus| {
        let said =
            bus.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "ListUnitsByNames", &(names,)).await?;
        let body = said.body();
        let rows: Vec<Row<'_>> = body.deserialize()?;
        let listed = |(id, _, load, active, sub, ..): Row<'_>| {
            let [id, load, active, sub] = [id, load, active, sub].map(str::to_owned);
            Listed { id, load, active, sub }
        };
        Ok(rows.into_iter().map(listed).collect())
    })
}

/// What there is to say of units of these names, in their order and as `systemctl show` writes it, of the properties that
/// are `wanted`.
pub(super) fn show(names: &[&str], wanted: &'static [&'static str], within: Duration) -> Option<String> {
    ask(ADDRESS, within, async |bus| {
        let mut all = String::new();
        for some in names.chunks(IN_FLIGHT) {
            let mut asked = JoinSet::new();
            for (at, name) in some.iter().enumerate() {
                let (bus, name) = (bus.clone(), (*name).to_owned());
                asked.spawn(async move { (at, block(&bus, &name, wanted).await) });
            }
            let mut blocks = vec![String::new(); some.len()];
            while let Some(said) = asked.join_next().await {
                let (at, said) = said.map_err(|error| Error::Failure(error.to_string()))?;
                if let Some(block) = blocks.get_mut(at) {
                    *block = said?;
                }
            }
            blocks.iter().for_each(|block| {
                all.push_str(block);
                all.push('\n');
            });
        }
        Ok(all)
    })
}

/// Asks over a connection of its own, at most `within`; none where there is no answer. Blocks: never on a runtime's worker.
fn ask<T>(
    address: &str,
    within: Duration,
    question: impl AsyncFnOnce(Connection) -> zbus::Result<T>,
) -> Option<T> {
    let none = |error: &dyn Display| tracing::debug!(%error, "the bus does not answer about units");
    let runtime = Builder::new_current_thread().enable_all().build().inspect_err(|error| none(error)).ok()?;
    let asked = async { question(connection::Builder::address(address).build().await?).await };
    let said = runtime.block_on(async { tokio::time::timeout(within, asked).await });
    said.inspect_err(|late| none(late)).ok()?.inspect_err(|error| none(error)).ok()
}

/// The lines of one unit. What all units have comes in one answer; what its kind has besides is asked for by name, since of
/// all of that the service manager reads much from the kernel. So the answers are of moments that follow each other: of what
/// moves just then the next look says how it is.
async fn block(bus: &Connection, name: &str, wanted: &[&'static str]) -> zbus::Result<String> {
    let object = object(name);
    let all = async {
        let said = bus.call_method(Some(SERVICE), &*object, Some(PROPERTIES), "GetAll", &(UNIT,)).await?;
        let body = said.body();
        let known: HashMap<&str, Variant<'_>> = body.deserialize()?;
        let known = wanted.iter().filter_map(|name| Some((*name, known.get(name)?)));
        known.map(|(name, value)| line(name, value)).collect::<zbus::Result<String>>()
    };
    let (kind, [a, b, c, d]) = of_kind(name);
    let interface = format!("{SERVICE}.{kind}");
    let one = async |name: &'static str| {
        if !wanted.contains(&name) {
            return Ok(String::new());
        }
        let question = (interface.as_str(), name);
        let said = bus.call_method(Some(SERVICE), &*object, Some(PROPERTIES), "Get", &question).await?;
        line(name, &said.body().deserialize::<Variant<'_>>()?)
    };
    let (all, a, b, c, d) = tokio::try_join!(all, one(a), one(b), one(c), one(d))?;
    Ok([all, a, b, c, d].concat())
}

/// The interface that units of this one's kind have besides, and what is asked there: up to four, as [`IN_FLIGHT`] counts.
fn of_kind(name: &str) -> (&'static str, [&'static str; 4]) {
    let result = ["Result", "", "", ""];
    match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "service" => ("Service", ["Type", "RemainAfterExit", "Result", "NRestarts"]),
        "mount" => ("Mount", ["Type", "Result", "", ""]),
        "socket" => ("Socket", result),
        "timer" => ("Timer", result),
        "path" => ("Path", result),
        "automount" => ("Automount", result),
        "swap" => ("Swap", result),
        "scope" => ("Scope", result),
        _ => ("Unit", [""; 4]),
    }
}

fn line(name: &str, value: &Variant<'_>) -> zbus::Result<String> {
    let word = word(value).filter(|word| !word.contains('\n'));
    let word = word.ok_or_else(|| Error::Failure(format!("{name} cannot be written in a line")))?;
    Ok([name, "=", &word, "\n"].concat())
}

/// A value as systemctl writes it; none of a form that it would write otherwise.
fn word(value: &Variant<'_>) -> Option<String> {
    match value {
        Variant::Bool(is) => Some(if *is { "yes" } else { "no" }.to_owned()),
        Variant::U32(number) => Some(number.to_string()),
        Variant::U64(number) => Some(number.to_string()),
        Variant::Str(text) => Some(text.as_str().to_owned()),
        Variant::Variant(inner) => word(inner),
        Variant::Array(array) => {
            let mut written = String::new();
            for element in array.inner() {
                match element {
                    Variant::Str(text) if written.is_empty() => written.push_str(text.as_str()),
                    Variant::Str(text) => written.extend([" ", text.as_str()]),
                    Variant::U8(byte) => write!(written, "{byte:02x}").ok()?,
                    _ => return None,
                }
            }
            Some(written)
        }
        _ => None,
    }
}

/// The object of a unit, whose name is written so that it can be a part of a path.
fn object(name: &str) -> String {
    let mut path = format!("{OBJECT}/unit/");
    for (at, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || byte.is_ascii_digit() && at > 0 {
            path.push(char::from(byte));
        } else {
            path.extend(["_", &format!("{byte:02x}")]);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use zbus::wire::{Array, Str};

    use super::*;

    #[test]
    fn a_unit_has_the_object_that_systemd_gives_it() {
        for (name, last) in [
            ("webfront.service", "webfront_2eservice"),
            ("legacy-sync.service", "legacy_2dsync_2eservice"),
            ("a@1.service", "a_401_2eservice"),
            ("3proxy.service", "_33proxy_2eservice"),
            (r"dev-disk-by\x2dlabel-x.device", "dev_2ddisk_2dby_5cx2dlabel_2dx_2edevice"),
        ] {
            assert_eq!(object(name), format!("/org/freedesktop/systemd1/unit/{last}"));
        }
    }

    #[test]
    fn values_are_written_as_systemctl_writes_them_and_others_not_at_all() {
        let names = Array::from(vec![Str::from("a.service"), Str::from("b.service")]);
        let id = Array::from(vec![0x5f_u8, 0x0c]);
        for (value, written) in [
            (Variant::Bool(true), Some("yes")),
            (Variant::Bool(false), Some("no")),
            (Variant::U32(3), Some("3")),
            (Variant::U64(1_796_081), Some("1796081")),
            (Variant::Str("loaded".into()), Some("loaded")),
            (Variant::Array(names), Some("a.service b.service")),
            (Variant::Array(id), Some("5f0c")),
            (Variant::Array(Array::from(Vec::<u8>::new())), Some("")),
            (Variant::F64(0.5), None),
        ] {
            assert_eq!(word(&value).as_deref(), written, "{value:?}");
        }
    }

    #[test]
    fn where_there_is_no_bus_or_one_that_is_silent_nothing_is_said_and_it_is_over_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let asked = |within| ask(&format!("unix:path={}", path.display()), within, async |_| Ok(()));
        assert_eq!(asked(Duration::from_secs(60)), None, "nobody listens");
        let silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(asked(Duration::from_millis(50)), None);
        drop(silent);
    }
}
