//! What a transaction would do, from its simulation, judged as it would be before it is run; nothing is run, read anew or
//! noted (H-25). Called by the preview.

use std::sync::Arc;

use tenure_protocol::foresight::PackageMove;

use super::transact::{Request, Terms, Transaction, together};
use super::transaction::{Simulated, Wanted};
use super::{OWN_PACKAGE, Tools, Trouble};
use crate::resource::Stands;

/// Every package that a transaction touches, by name.
pub(crate) type Moves = Arc<[PackageMove]>;

/// What would be done for each of these: together, or each alone where together it would not be done.
pub(crate) fn foresee(
    tools: &Tools<'_>,
    requests: &[Request<'_>],
    terms: Terms<'_>,
) -> Vec<Result<Moves, Trouble>> {
    let transaction = match Transaction::begin(tools, terms) {
        Ok(transaction) => transaction,
        Err(trouble) => return requests.iter().map(|_| Err(trouble.clone())).collect(),
    };
    let chosen: Vec<Result<_, Trouble>> =
        requests.iter().map(|request| transaction.choose(request, requests)).collect();
    let all = together(chosen.iter().flatten());
    let several = chosen.iter().flatten().count() > 1;
    // Each takes a while.
    let simulate = |wanted: &Wanted| match tools.is_called_off() {
        true => Err(Trouble::called_off()),
        false => transaction.simulate(wanted).and_then(|simulated| moves(&transaction, simulated)),
    };
    let common = simulate(&all);
    let each = |wanted: Result<_, Trouble>| match &common {
        Err(trouble) if several && trouble.stands != Stands::Outstanding => simulate(&wanted?),
        common => wanted.and(common.clone()),
    };
    chosen.into_iter().map(each).collect()
}

fn moves(transaction: &Transaction<'_>, simulated: Simulated) -> Result<Moves, Trouble> {
    if let Some((_, version)) =
        simulated.brought(OWN_PACKAGE).filter(|_| !transaction.manager.proves_when_asked())
    {
        let reason = format!(
            "it would bring {OWN_PACKAGE} {version}, and whether a signature proves that is seen when it is applied: what \
             is not proven is refused then"
        );
        return Err(Trouble::unknown("proven_when_applied", reason));
    }
    let gone = simulated.remove.iter().filter(|name| !simulated.install.contains_key(*name)).map(|name| {
        let from = transaction.packages.installed(name).map(str::to_owned);
        PackageMove { name: name.clone(), from, to: None }
    });
    let brought = simulated.install.iter().map(|(name, (from, to))| PackageMove {
        name: name.clone(),
        from: from.clone(),
        to: Some(to.clone()),
    });
    let mut moves: Vec<PackageMove> = gone.chain(brought).collect();
    moves.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(moves.into())
}
