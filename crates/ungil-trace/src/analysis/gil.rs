//! One GIL: who holds it, who waits for it, and whom each wait is charged to.
//!
//! Events that make no sense (because others were lost) never stop the count:
//!
//! | event           | and yet              | then                                   |
//! |-----------------|----------------------|----------------------------------------|
//! | acquire, wait   | the thread holds     | its release was lost: it had no length |
//! | acquire         | another thread holds | its release was lost: it had no length |
//! | release         | another thread holds | its release was lost: it had no length |
//! | release         | the thread waits     | the acquire was lost: no wait counted  |
//! | wait            | the thread waits     | the acquire was lost: a new wait       |
//! | the thread ends | it holds or waits    | that ends here, and is counted         |

use super::catching_up::Cut;
use super::charges::Charges;
use super::ended::{Ended, EndedWait};
use super::history::History;
use super::hold::{End, Hold};
use super::judged::Judged;
use super::long_holds::LongHolds;
use super::samples::Sample;
use super::seat::{Detail, Released, Seat, Wait};
use crate::record::{Doing, Frame, KernelCount, ThreadId};
use crate::report::OtherThreads;
use ungil_core::{Event, Kind};

/// The seat that stands for all folded threads.
pub(super) const OTHERS: usize = 0;

/// The state of one GIL.
#[derive(Clone, Debug)]
pub(super) struct Gil {
    /// Its number in the process.
    pub(super) number: u8,
    /// One for each thread that touched it; [`OTHERS`] first.
    pub(super) seats: Vec<Seat>,
    /// Seats of folded threads, for others to take.
    pub(super) free_seats: Vec<u32>,
    pub(super) holder: Option<Hold>,
    /// Seats of the threads that wait.
    pub(super) waiting: Vec<u32>,
    pub(super) history: History,
    /// Time in which somebody held while somebody waited, in holds that have ended.
    pub(super) contended_ns: u64,
    pub(super) last_holder: Option<ThreadId>,
    /// Nothing counts as earlier than this.
    pub(super) floor_ns: u64,
    /// How much of it goes on at that moment, and whether anybody got it or let go since.
    pub(super) cut: Cut,
    pub(super) has_counted: bool,
    detail: Detail,
    /// When the process got its second thread, if it has one and had none when this was first seen.
    pub(super) startup_end_ns: u64,
    /// How long it was held before that.
    pub(super) startup_ns: u64,
    pub(super) handoffs: u64,
    pub(super) long_holds: LongHolds,
    /// The folded threads, summed.
    pub(super) others: OtherThreads,
    charges: Charges,
    /// What was judged, if anybody asks.
    pub(super) judged: Option<Judged>,
    /// What has ended and was not told yet, if anybody asks.
    pub(super) ended: Option<Vec<Ended>>,
}

impl Gil {
    pub(super) fn new(number: u8) -> Self {
        Self {
            judged: None,
            ended: None,
            number,
            seats: vec![Seat::default()],
            free_seats: Vec::new(),
            holder: None,
            waiting: Vec::new(),
            history: History::new(),
            contended_ns: 0,
            last_holder: None,
            floor_ns: 0,
            cut: Cut::default(),
            has_counted: false,
            detail: Detail::All,
            startup_end_ns: 0,
            startup_ns: 0,
            handoffs: 0,
            long_holds: LongHolds::default(),
            others: OtherThreads::default(),
            charges: Charges::default(),
        }
    }

    /// One that counts from `floor_ns` on.
    pub(super) fn since(number: u8, floor_ns: u64) -> Self {
        let mut gil = Self { floor_ns, ..Self::new(number) };
        gil.history.end_ns = floor_ns;
        gil
    }

    /// A seat for a thread that touches this GIL for the first time.
    pub(super) fn sit_down(&mut self, thread: ThreadId) -> u32 {
        let seat = self.free_seats.pop().unwrap_or_else(|| {
            self.seats.push(Seat::default());
            u32::try_from(self.seats.len() - 1).expect("seats are in memory, far fewer than 2^32")
        });
        self.seats[seat as usize] =
            Seat { thread: Some(thread), last_ns: self.floor_ns, ..Seat::new(self.detail) };
        seat
    }

    /// The same GIL with nothing counted yet, from `at_ns` on: what goes on then begins then.
    /// Threads keep their seats; those that are not `live` lose them.
    pub(super) fn reopened(
        &self,
        at_ns: u64,
        detail: Detail,
        live: impl Fn(ThreadId) -> bool,
    ) -> Self {
        let mut gil = Self {
            detail,
            last_holder: self.last_holder,
            cut: Cut { holds: u64::from(self.is_held()), waits: self.waiting() as u64 },
            ..Self::since(self.number, at_ns)
        };
        for (index, seat) in self.seats.iter().enumerate().skip(1) {
            let keeps = seat.thread.is_some_and(&live);
            gil.seats.push(if keeps { seat.reopened(at_ns, detail) } else { Seat::default() });
            if !keeps {
                gil.free_seats.push(u32::try_from(index).expect("seats are numbered in 32 bits"));
            }
        }
        gil.waiting.clone_from(&self.waiting);
        gil.holder = self.holder.as_ref().map(|hold| hold.reopened(at_ns));
        gil
    }

    /// How many threads wait.
    #[inline]
    pub(super) const fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a thread holds it.
    pub(super) const fn is_held(&self) -> bool {
        self.holder.is_some()
    }

    /// Notes that the process has its second thread since `at_ns`: what was held before was the
    /// start-up. Threads are told of before what others did earlier, so holds that have not ended
    /// yet, or are not known yet, may belong to it.
    pub(super) fn end_startup(&mut self, at_ns: u64) {
        self.startup_end_ns = at_ns;
        for seat in &mut self.seats {
            seat.startup_ns = seat.holds.sum.total_ns;
            seat.startup_calls = seat.blocking_calls;
        }
        let all = self.seats.iter().map(|seat| seat.startup_ns);
        self.startup_ns = all.fold(0, u64::saturating_add);
    }

    /// Takes in one event. For an acquire that ended a wait: the thread that held longest
    /// meanwhile.
    #[inline]
    pub(super) fn apply(&mut self, index: u32, event: Event, blame_ns: u64) -> Option<ThreadId> {
        if event.at_ns < self.floor_ns && self.catch_up(index, event) {
            return None;
        }
        let seat = &mut self.seats[index as usize];
        let at_ns = event.at_ns.max(seat.last_ns);
        seat.last_ns = at_ns;
        match event.kind {
            Kind::Wait => self.begin_wait(index, at_ns, blame_ns),
            Kind::Acquire => return self.acquire(index, at_ns, blame_ns),
            Kind::DropRequest => {
                seat.drop_requests += 1;
                if let Some((ended, thread)) = self.ended.as_mut().zip(seat.thread) {
                    ended.push(Ended::DropRequest { thread, at_ns });
                }
                if let Some(hold) = &mut self.holder
                    && hold.seat != index
                {
                    hold.is_asked(at_ns);
                }
            }
            Kind::ReleaseVoluntary => {
                seat.voluntary += 1;
                self.release(index, at_ns, End::Voluntary, blame_ns);
            }
            Kind::ReleaseForced => {
                seat.forced += 1;
                self.release(index, at_ns, End::Forced, blame_ns);
            }
            Kind::Ran | Kind::RanAndBlocked => {
                if let Some(hold) = self.holder.as_mut().filter(|hold| hold.seat == index) {
                    hold.told(event.at_ns, event.kind == Kind::RanAndBlocked);
                }
            }
        }
        None
    }

    fn begin_wait(&mut self, index: u32, at_ns: u64, blame_ns: u64) {
        self.seats[index as usize].end_gap(at_ns);
        if self.holder.as_ref().is_some_and(|hold| hold.seat == index) {
            self.end_hold(at_ns, End::Unseen, blame_ns);
        }
        self.discard_wait(index, at_ns);
        self.wait_from(index, at_ns);
    }

    /// The thread waits from `at_ns` on.
    pub(super) fn wait_from(&mut self, index: u32, at_ns: u64) {
        let late_ns = self.history.contend(at_ns);
        self.add_contended(at_ns, at_ns.saturating_add(late_ns));
        if let Some(hold) = &mut self.holder {
            hold.begins_to_be_waited_for(at_ns);
        }
        self.waiting.push(index);
        self.seats[index as usize].wait =
            Some(Wait { since_ns: at_ns, charged_ns: at_ns, worst: None, own_ns: 0 });
    }

    fn acquire(&mut self, index: u32, at_ns: u64, blame_ns: u64) -> Option<ThreadId> {
        self.has_counted = true;
        if self.holder.is_some() {
            self.end_hold(at_ns, End::Unseen, blame_ns);
        }
        let waited = self.settle(index, at_ns);
        let waited_ns = waited.map(|(wait, _)| at_ns - wait.since_ns);
        if waited.is_some() {
            self.end_wait(index, at_ns);
        }
        let seat = &mut self.seats[index as usize];
        seat.end_gap(at_ns);
        if let Some(ns) = waited_ns {
            seat.waits.add(ns);
            tell_wait(self.ended.as_mut(), seat, [at_ns - ns, at_ns], true);
        }
        if let Some((judged, (wait, culprit))) = self.judged.as_mut().zip(waited) {
            judged.end_wait(seat, wait, at_ns, culprit);
        }
        if let Some(released) = seat.released.take() {
            seat.gaps.add(at_ns - released.at_ns);
            if released.voluntary {
                seat.blocking_calls += 1;
                seat.startup_calls += u64::from(at_ns < self.startup_end_ns);
                if let Some(ns) = waited_ns {
                    seat.blocking_waits.add(ns);
                }
            }
        }
        if self.last_holder.is_some_and(|last| Some(last) != seat.thread) {
            self.handoffs += 1;
        }
        self.last_holder = seat.thread;
        let since_ns = at_ns.max(self.history.end_ns);
        let counts = seat.counts.split_off(since_ns);
        self.holder = Some(Hold::new(index, since_ns, !self.waiting.is_empty(), &counts));
        waited.and_then(|(_, worst)| worst)
    }

    fn release(&mut self, index: u32, at_ns: u64, end: End, blame_ns: u64) {
        self.has_counted = true;
        match &self.holder {
            Some(hold) if hold.seat == index => self.end_hold(at_ns, end, blame_ns),
            Some(_) => self.end_hold(at_ns, End::Unseen, blame_ns),
            None => {}
        }
        self.discard_wait(index, at_ns);
        self.seats[index as usize].released =
            Some(Released { at_ns, voluntary: end == End::Voluntary, is_gap_over: false });
    }

    /// Ends whatever the thread is doing, because the thread ends.
    pub(super) fn leave(&mut self, index: u32, at_ns: u64, blame_ns: u64) {
        let at_ns = at_ns.max(self.seats[index as usize].last_ns);
        self.seats[index as usize].end_gap(at_ns);
        if self.holder.as_ref().is_some_and(|hold| hold.seat == index) {
            self.end_hold(at_ns, End::Cut, blame_ns);
        }
        if let Some((wait, _)) = self.settle(index, at_ns) {
            let ns = at_ns - wait.since_ns;
            let seat = &mut self.seats[index as usize];
            seat.waits.add(ns);
            seat.cut_waits.add(ns);
            tell_wait(self.ended.as_mut(), seat, [wait.since_ns, at_ns], false);
            if let Some(hold) = &mut self.holder {
                hold.lost_waiter(wait, at_ns);
            }
            self.end_wait(index, at_ns);
        }
    }

    /// Adds to what was sampled of the hold that this thread had at `at_ns`, if that goes on, was
    /// long or was judged.
    pub(super) fn sampled(&mut self, index: u32, at_ns: u64, sample: &Sample) {
        match &mut self.holder {
            Some(hold) if hold.seat == index && hold.since_ns <= at_ns => {
                hold.samples.wait(at_ns, sample.clone());
            }
            _ => {
                let Some(thread) = self.seats[index as usize].thread else { return };
                let judged = self.judged.as_mut();
                let judged = judged.and_then(|judged| judged.samples_at(thread, at_ns));
                let long = self.long_holds.samples_at(thread, at_ns);
                judged.into_iter().chain(long).for_each(|samples| samples.add(sample.clone()));
            }
        }
    }

    /// Keeps what a look at the thread showed: of a gap if it is off the GIL, of a hold if it has
    /// held here.
    pub(super) fn looked_at(&mut self, index: u32, at_ns: u64, doing: &Doing, frames: &[Frame]) {
        let hold = self.holder.as_ref().filter(|hold| hold.seat == index);
        let (holds, since_ns) = (hold.is_some(), hold.map(|hold| hold.since_ns));
        let seat = &mut self.seats[index as usize];
        let counts = match doing {
            Doing::Held { .. } => holds || seat.last_ns > 0,
            Doing::Off { .. } => !holds && seat.released.is_some_and(|it| !it.is_gap_over),
        };
        if let Some(looks) = seat.looks.as_mut().filter(|_| counts) {
            looks.add(at_ns, since_ns, doing, frames);
        }
    }

    /// Keeps what the kernel had counted for the thread.
    pub(super) fn count(&mut self, index: u32, count: KernelCount) {
        match &mut self.holder {
            Some(hold) if hold.seat == index => hold.count(count),
            _ => self.seats[index as usize].counts.add(count),
        }
    }

    pub(super) fn add_contended(&mut self, from_ns: u64, to_ns: u64) {
        let ns = to_ns.saturating_sub(from_ns);
        self.contended_ns = self.contended_ns.saturating_add(ns);
        if let Some(ended) = self.ended.as_mut().filter(|_| ns > 0) {
            ended.push(Ended::Contended { from_ns, to_ns });
        }
    }

    /// The thread waits no longer. What its wait was charged with stays.
    pub(super) fn end_wait(&mut self, index: u32, at_ns: u64) {
        self.seats[index as usize].wait = None;
        if let Some(place) = self.waiting.iter().position(|&waiting| waiting == index) {
            self.waiting.swap_remove(place);
        }
        if self.waiting.is_empty()
            && let Some(hold) = &mut self.holder
            && let Some(since_ns) = hold.ends_to_be_waited_for()
        {
            self.add_contended(since_ns, at_ns);
        }
    }

    /// Forgets a wait whose end was lost, but for what has been charged already.
    fn discard_wait(&mut self, index: u32, at_ns: u64) {
        let seat = &mut self.seats[index as usize];
        if let Some(wait) = seat.wait {
            if wait.charged_ns > wait.since_ns {
                seat.waits.add(wait.charged_ns - wait.since_ns);
                tell_wait(self.ended.as_mut(), seat, [wait.since_ns, wait.charged_ns], false);
            }
            self.end_wait(index, at_ns);
        }
    }

    /// Charges the wait of this seat up to `at_ns`, and returns it with the thread that held
    /// longest during it.
    fn settle(&mut self, index: u32, at_ns: u64) -> Option<(Wait, Option<ThreadId>)> {
        let Self { charges, seats, history, holder, ended, .. } = self;
        charges.settle(seats, history, holder.as_ref(), ended.as_mut(), index, at_ns)
    }

    /// Forgets the past holds that nobody needs any more.
    pub(super) fn trim_history(&mut self) {
        let waits = self.waiting.iter().filter_map(|&index| self.seats[index as usize].wait);
        let needed_ns = waits.map(|wait| wait.charged_ns).min().unwrap_or(u64::MAX);
        if !self.history.forget(needed_ns) {
            self.settle_all();
        }
    }

    /// Charges every running wait with the past holds, which nobody needs then.
    pub(super) fn settle_all(&mut self) {
        for place in 0..self.waiting.len() {
            self.settle(self.waiting[place], self.history.end_ns);
        }
        self.history.clear();
    }
}

/// Tells of a wait of this seat.
#[inline]
fn tell_wait(
    ended: Option<&mut Vec<Ended>>,
    seat: &Seat,
    [since_ns, end_ns]: [u64; 2],
    acquired: bool,
) {
    if let Some((ended, thread)) = ended.zip(seat.thread) {
        ended.push(Ended::Wait(EndedWait { thread, since_ns, end_ns, acquired }));
    }
}
