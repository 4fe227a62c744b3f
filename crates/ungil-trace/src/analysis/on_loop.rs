//! How long the thread of an event loop computed at a time, and in which functions: nothing else of
//! that loop ran meanwhile, whether or not another thread waited for the GIL.
//!
//! A look says of one long hold whether it was a callback's. Of those that no look found, the last
//! look before says it: a thread whose loop runs does nothing else.

use super::called::{Called, called, is_import};
use super::functions::Functions;
use super::length::{Sum, seconds};
use super::off_gil::is_loop;
use super::samples::line_of;
use crate::origin::Users;
use crate::record::{Doing, Frame};
use crate::report::EventLoop;

/// What is known of the loop of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct OnLoop {
    /// Whether it runs one, as far as the last look shows.
    runs: bool,
    /// The function that runs it.
    by: Option<String>,
    looks: u64,
    functions: Functions,
    holds: Sum,
    /// The last long hold that is over. Looks at it may have yet to come.
    last: Option<Long>,
    /// What a look said of the hold that goes on, with its beginning.
    going: Option<(u64, bool)>,
}

/// A long hold that is over.
#[derive(Clone, Copy, Debug)]
struct Long {
    start_ns: u64,
    end_ns: u64,
    ran_ns: u64,
    is_on_loop: bool,
}

impl OnLoop {
    /// Takes in what a look at `at_ns` showed; `since_ns` is when the hold began that goes on.
    pub(super) fn look(
        &mut self,
        at_ns: u64,
        since_ns: Option<u64>,
        doing: &Doing,
        frames: &[Frame],
    ) {
        if frames.is_empty() {
            return;
        }
        let inner = frames.iter().position(is_loop);
        let inner = inner.or_else(|| self.is_greenlet(frames).then_some(frames.len()));
        if let Some(inner) = inner
            && self.by.is_none()
        {
            self.by = frames.get(inner).map(|by| line_of(&Frame { line: 0, ..by.clone() }));
        }
        // What a server imports before it serves is done once, and keeps nobody waiting.
        let inner = inner.filter(|inner| !frames[..*inner].iter().any(is_import));
        self.runs = inner.is_some();
        let &Doing::Held { waiters } = doing else { return };
        match (&mut self.last, since_ns) {
            (Some(last), _) if (last.start_ns..=last.end_ns).contains(&at_ns) => {
                last.is_on_loop = self.runs;
            }
            (_, Some(since_ns)) if since_ns <= at_ns => self.going = Some((since_ns, self.runs)),
            _ => {}
        }
        if let Some(inner) = inner.filter(|_| waiters == 0) {
            self.looks += 1;
            let mut users = called(&frames[..inner], Users::of(frames));
            if users.is_empty() {
                users.extend(frames.first().map(Called::by_itself));
            }
            self.functions.add(0, &users);
        }
    }

    /// Whether it is the stack of a greenlet of gevent. The hub, which runs them, is none of its
    /// callers: the thread was seen in that before. The first greenlet is the program itself.
    fn is_greenlet(&self, frames: &[Frame]) -> bool {
        let has_hub = self.by.as_ref().is_some_and(|by| by.contains("/gevent/hub.py"));
        let outermost = frames.last().filter(|_| has_hub);
        outermost.is_some_and(|it| it.function != "<module>" && !it.file.ends_with("/threading.py"))
    }

    /// A long hold is over, in which the thread ran for so long.
    pub(super) fn end_long_hold(&mut self, start_ns: u64, end_ns: u64, ran_ns: u64) {
        let going = self.going.take().filter(|(since_ns, _)| *since_ns == start_ns);
        let is_on_loop = going.map_or(self.runs, |(_, is_on_loop)| is_on_loop);
        self.holds = self.all_holds();
        self.last = Some(Long { start_ns, end_ns, ran_ns, is_on_loop });
    }

    /// The same, with nothing counted yet.
    pub(super) fn reopened(&self) -> Self {
        let by = self.by.clone().filter(|_| self.runs);
        Self { runs: self.runs, by, going: self.going, ..Self::default() }
    }

    fn all_holds(&self) -> Sum {
        let mut holds = self.holds;
        if let Some(last) = self.last.filter(|last| last.is_on_loop) {
            holds.add(last.ran_ns);
        }
        holds
    }

    /// What is told of it; `None` if no look found it in a loop.
    pub(super) fn report(&self) -> Option<EventLoop> {
        let holds = self.all_holds();
        Some(EventLoop {
            by: self.by.clone()?,
            holds: holds.count,
            computed_s: seconds(holds.total_ns),
            longest_ms: holds.max_ns as f64 / 1e6,
            looks: self.looks,
            functions: self.functions.computed_in(),
        })
    }
}
