//! Steps that must survive a death in the middle: each durable step of a daemon has a name, and passes a point before
//! and a point after it. In a program built with the feature `crash-points`, which only tests build, `TENURE_CRASH`
//! names a point at which the process kills itself, with nothing unwound and nothing flushed. In every other program a
//! point is nothing at all. Each daemon keeps its names in one list, its `steps`.

#[cfg(feature = "crash-points")]
mod armed;

#[cfg(test)]
mod tests;

/// One durable step. Its two points are called `NAME.before` and `NAME.after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step(&'static str);

impl Step {
    /// A step of this name, which is unique among all of one program.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Does it, between its two points. What failed passes the second one too.
    #[inline]
    pub fn take<T>(self, work: impl FnOnce() -> T) -> T {
        self.before();
        let done = work();
        self.after();
        done
    }

    /// Does it, where it is waited for.
    #[inline]
    pub async fn awaited<T>(self, work: impl Future<Output = T>) -> T {
        self.before();
        let done = work.await;
        self.after();
        done
    }

    /// The point before it, where its two points lie apart.
    #[inline]
    pub fn before(self) {
        #[cfg(feature = "crash-points")]
        armed::pass(self.0, "before");
    }

    /// The point after it.
    #[inline]
    pub fn after(self) {
        #[cfg(feature = "crash-points")]
        armed::pass(self.0, "after");
    }
}
