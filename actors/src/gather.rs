//! What many tell one by one, gathered for a while and put away in one batch. What could not be put away waits and goes
//! with the next batch. Whoever tells waits for nothing; what is told between two lives of the gatherer is refused.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::marker::PhantomData;
use std::mem::take;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::supervisor::Child;
use crate::timer::{Timer, after};
use crate::work::{Panicked, Work, work};
use crate::{Address, Gone};

#[cfg(test)]
mod tests;

/// Where a batch goes.
pub trait Batches: Clone + Send + Sync + 'static {
    /// What is gathered. Told twice before its batch, it is in it once.
    type One: Ord + Clone + Send + Sync + 'static;
    /// Why a batch was not put away.
    type Error: Display + Send + 'static;

    /// Puts a batch away: what was told since the last one, and what the last one could not put away, or was putting away
    /// when the gatherer ended. Of that some may have arrived: to put one away twice must be no more than once.
    fn put(
        &self,
        fresh: BTreeSet<Self::One>,
        waiting: BTreeSet<Self::One>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// A batch was not put away, for this reason; said once for as many as fail in a row. It goes with the next one,
    /// unless it was the last, at the end of the gatherer.
    fn failed(&self, why: &str);
}

/// Tells the gatherer. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gather<T> {
    address: Address<Msg<T>>,
}

impl<T: Ord + Clone + Send + Sync + 'static> Gather<T> {
    /// Nobody gathers yet.
    #[must_use]
    pub fn vacant() -> Self {
        Self { address: Address::vacant() }
    }

    /// The actor for the tree: a batch is put away so long after the first of it was told, and at the end.
    pub fn child<B: Batches<One = T>>(&self, name: &str, every: Duration, to: B) -> Child {
        Child::new(name, self.address.clone(), move || (Gatherer(PhantomData), (every, to.clone())))
    }

    /// One more.
    pub fn tell(&self, one: T) -> Result<(), Gone> {
        self.address.tell(Msg::One(one))
    }
}

struct Gatherer<B>(PhantomData<B>);

enum Msg<T> {
    One(T),
    PutDue,
    Put(Result<Result<(), String>, Panicked>),
}

struct Gathered<B: Batches> {
    every: Duration,
    to: B,
    fresh: BTreeSet<B::One>,
    waiting: BTreeSet<B::One>,
    /// The batch that is being put away, until that is answered.
    on_its_way: BTreeSet<B::One>,
    due: Option<Timer>,
    putting: Option<Work>,
    /// The last batch failed: said once, not each time.
    is_failing: bool,
}

impl<B: Batches> Actor for Gatherer<B> {
    type Msg = Msg<B::One>;
    type State = Gathered<B>;
    type Arguments = (Duration, B);

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        (every, to): (Duration, B),
    ) -> Result<Gathered<B>, ActorProcessingErr> {
        let (fresh, waiting, on_its_way) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Ok(Gathered { every, to, fresh, waiting, on_its_way, due: None, putting: None, is_failing: false })
    }

    async fn handle(
        &self,
        me: ActorRef<Self::Msg>,
        msg: Self::Msg,
        gathered: &mut Gathered<B>,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            Msg::One(one) => gathered.one(&me, one),
            Msg::PutDue => gathered.put(&me),
            Msg::Put(result) => gathered.was_put(&me, result),
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<Self::Msg>,
        gathered: &mut Gathered<B>,
    ) -> Result<(), ActorProcessingErr> {
        gathered.put_the_last().await;
        Ok(())
    }
}

impl<B: Batches> Gathered<B> {
    fn one(&mut self, me: &ActorRef<Msg<B::One>>, one: B::One) {
        self.fresh.insert(one);
        self.arm(me);
    }

    fn arm(&mut self, me: &ActorRef<Msg<B::One>>) {
        if self.due.is_none() && self.putting.is_none() {
            self.due = Some(after(me, self.every, || Msg::PutDue));
        }
    }

    fn put(&mut self, me: &ActorRef<Msg<B::One>>) {
        self.due = None;
        let (fresh, waiting, to) = (take(&mut self.fresh), take(&mut self.waiting), self.to.clone());
        self.on_its_way = fresh.union(&waiting).cloned().collect();
        let putting = async move { to.put(fresh, waiting).await.map_err(|error| error.to_string()) };
        self.putting = Some(work(me, putting, Msg::Put));
    }

    fn was_put(&mut self, me: &ActorRef<Msg<B::One>>, result: Result<Result<(), String>, Panicked>) {
        self.putting = None;
        let batch = take(&mut self.on_its_way);
        let failed = match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panicked) => Some(panicked.to_string()),
        };
        if let Some(why) = &failed {
            if !self.is_failing {
                self.to.failed(why);
            }
            self.waiting.extend(batch);
        }
        self.is_failing = failed.is_some();
        if !self.fresh.is_empty() || !self.waiting.is_empty() {
            self.arm(me);
        }
    }

    /// With it goes the batch that is on its way: nobody is left to hear whether it arrives.
    async fn put_the_last(&mut self) {
        self.putting = None;
        self.waiting.append(&mut self.on_its_way);
        let (fresh, waiting) = (take(&mut self.fresh), take(&mut self.waiting));
        if fresh.is_empty() && waiting.is_empty() {
            return;
        }
        if let Err(error) = self.to.put(fresh, waiting).await {
            self.to.failed(&error.to_string());
        }
    }
}
