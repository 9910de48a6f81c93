//! The machine's bus, as far as it is asked there: how units stand, in one call over a connection that lasts as long.

use std::time::Duration;

use tokio::runtime::Builder;
use zbus::connection;
use zbus::wire::ObjectPath;

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
const INTERFACE: &str = "org.freedesktop.systemd1.Manager";

/// Name, description, load, activity, the same in detail, and what the unit follows, its object and its job.
type Row<'m> =
    (&'m str, &'m str, &'m str, &'m str, &'m str, &'m str, ObjectPath<'m>, u32, &'m str, ObjectPath<'m>);

/// What the service manager says of units of these names, at most `within`; none where it cannot be had. Blocks: never
/// on a runtime's worker.
pub(super) fn units(names: &[&str], within: Duration) -> Option<Vec<Listed>> {
    let none =
        |error: &dyn std::fmt::Display| tracing::debug!(%error, "the bus does not say how units stand");
    let runtime = Builder::new_current_thread().enable_all().build().inspect_err(|error| none(error)).ok()?;
    let asked = async { tokio::time::timeout(within, ask(names)).await };
    let said = runtime.block_on(asked).inspect_err(|late| none(late)).ok()?;
    said.inspect_err(|error| none(error)).ok()
}

async fn ask(names: &[&str]) -> zbus::Result<Vec<Listed>> {
    let bus = connection::Builder::address(ADDRESS).build().await?;
    let said = bus.call_method(Some(SERVICE), OBJECT, Some(INTERFACE), "ListUnitsByNames", &(names,)).await?;
    let body = said.body();
    let rows: Vec<Row<'_>> = body.deserialize()?;
    let listed = |(id, _, load, active, sub, ..): Row<'_>| {
        let [id, load, active, sub] = [id, load, active, sub].map(str::to_owned);
        Listed { id, load, active, sub }
    };
    Ok(rows.into_iter().map(listed).collect())
}
