//! One GIL, as the events of a trace come in.

use super::links::{Beginnings, Link, POSTED_NS};
use super::races::Race;
use super::seat::Seat;
use crate::coldness::Coldness;
use crate::delays::Seen;
use std::collections::{HashMap, VecDeque};
use ungil_core::{Event, Kind};
use ungil_trace::record::{ProcessId, ThreadId};

#[derive(Debug)]
pub(super) struct Gil {
    pub(super) process: ProcessId,
    pub(super) number: u8,
    pub(super) seats: Vec<Seat>,
    seat_of: HashMap<ThreadId, usize>,
    /// How many threads wait.
    waiting: usize,
    last_holder: Option<usize>,
    /// Who was forced to let go last, until it has it again.
    left: Option<usize>,
    /// Who let go of it last, if a thread waited, until somebody has it.
    racing: Option<usize>,
    /// Those that wait, in the order in which they began to.
    line: VecDeque<(usize, u64)>,
    /// When the holder was asked first.
    asked_ns: Option<u64>,
    acquired_ns: u64,
    beginnings: Beginnings,
    coldness: Coldness,
    pub(super) handoffs: u64,
    pub(super) forced: u64,
    /// From the beginning of a wait to the drop request, where the GIL did not go to another.
    pub(super) until_asked: Seen,
}

impl Gil {
    pub(super) fn new(process: ProcessId, number: u8) -> Self {
        Self {
            process,
            number,
            seats: Vec::new(),
            seat_of: HashMap::new(),
            waiting: 0,
            last_holder: None,
            left: None,
            racing: None,
            line: VecDeque::new(),
            asked_ns: None,
            acquired_ns: 0,
            beginnings: Beginnings::default(),
            coldness: Coldness::default(),
            handoffs: 0,
            forced: 0,
            until_asked: Seen::default(),
        }
    }

    /// Nothing that was told so far counts.
    pub(super) fn begin_anew(&mut self, at_ns: u64) {
        let (process, number) = (self.process, self.number);
        let mut seats = std::mem::take(&mut self.seats);
        for seat in &mut seats {
            seat.begin_anew(at_ns);
        }
        let waiting = seats.iter().filter(|seat| seat.waits_since_ns().is_some()).count();
        let seat_of = std::mem::take(&mut self.seat_of);
        let last_holder = self.last_holder;
        *self = Self { seats, seat_of, waiting, last_holder, ..Self::new(process, number) };
    }

    pub(super) fn seat(&mut self, thread: ThreadId) -> usize {
        *self.seat_of.entry(thread).or_insert_with(|| {
            self.seats.push(Seat::new(thread));
            self.seats.len() - 1
        })
    }

    /// The seat of a thread that has one.
    pub(super) fn seat_of(&mut self, thread: ThreadId) -> Option<&mut Seat> {
        self.seat_of.get(&thread).map(|index| &mut self.seats[*index])
    }

    pub(super) fn event(&mut self, thread: ThreadId, event: Event) {
        let index = self.seat(thread);
        let at_ns = event.at_ns;
        match event.kind {
            Kind::Wait => {
                let waited = self.seats[index].waits_since_ns().is_some();
                self.is_back(index, at_ns);
                let after = self.look(index, at_ns);
                self.seats[index].waits(at_ns, after);
                self.waiting += usize::from(!waited);
                self.line.push_back((index, at_ns));
            }
            Kind::DropRequest => {
                if let Some(since_ns) = self.seats[index].waits_since_ns()
                    && since_ns > self.acquired_ns
                {
                    self.until_asked.add(at_ns.saturating_sub(since_ns));
                }
                self.asked_ns.get_or_insert(at_ns);
            }
            Kind::Acquire => self.acquired(index, at_ns),
            Kind::ReleaseVoluntary => self.released(index, at_ns, false),
            Kind::ReleaseForced => self.released(index, at_ns, true),
            Kind::Ran => self.seats[index].ran(at_ns, false),
            Kind::RanAndBlocked => self.seats[index].ran(at_ns, true),
        }
    }

    fn acquired(&mut self, index: usize, at_ns: u64) {
        let waits_since_ns = self.seats[index].waits_since_ns();
        self.is_back(index, at_ns);
        if let Some(racer) = self.racing.take()
            && let Some(race) = &mut self.seats[racer].race
        {
            let waited = waits_since_ns.is_some_and(|since_ns| race.is_after(since_ns));
            race.ends(at_ns, racer == index, waited);
            let woken = race.woken;
            if woken != index {
                self.seats[woken].sleeps_again(at_ns);
            }
            self.know(racer);
        }
        match self.left {
            Some(left) if left != index => self.seats[left].other_acquired(at_ns, index),
            _ => self.left = None,
        }
        if self.last_holder.replace(index).is_some_and(|before| before != index) {
            self.handoffs += 1;
        }
        self.asked_ns = None;
        self.acquired_ns = at_ns;
        let after = self.look(index, at_ns);
        self.seats[index].acquires(at_ns, after);
        if let Some(burst) = self.seats[index].began() {
            self.beginnings.add(at_ns, index, burst);
        }
        if waits_since_ns.is_some() {
            self.waiting = self.waiting.saturating_sub(1);
        }
    }

    fn released(&mut self, index: usize, at_ns: u64, asked: bool) {
        let waited = self.seats[index].waits_since_ns().is_some();
        let asked_ns = self.asked_ns.take();
        let asked_for_ns = asked_ns.map_or(0, |asked_ns| at_ns.saturating_sub(asked_ns));
        let held_ns = self.seats[index].held_for_ns(at_ns);
        let cold_ns = self.coldness.part_of(index, held_ns);
        self.coldness.held(index, held_ns);
        self.seats[index].releases(at_ns, asked.then_some(asked_for_ns), cold_ns);
        // If it waited its acquire was lost.
        self.waiting = self.waiting.saturating_sub(usize::from(waited));
        if asked {
            self.forced += 1;
            self.left = Some(index);
        }
        let first = self.first_in_line().filter(|(first, _)| *first != index);
        self.seats[index].race = first.map(|(first, _)| {
            let slept_ns = self.seats[first].slept_for_ns(at_ns);
            Race::new(at_ns, first, slept_ns, asked)
        });
        self.racing = first.map(|_| index);
    }

    /// The thread that let go last, or before, wants the GIL again.
    fn is_back(&mut self, index: usize, at_ns: u64) {
        if let Some(race) = &mut self.seats[index].race {
            race.is_back(at_ns);
            self.know(index);
        }
    }

    /// Keeps the race of that thread if all is known of it.
    fn know(&mut self, index: usize) {
        let Some(race) = self.seats[index].race else { return };
        if let Some(known) = race.known() {
            self.seats[index].race = None;
            self.seats[race.woken].races.add(index, known);
        }
    }

    /// What the thread may have waited for that wants the GIL now, if it was away.
    fn look(&mut self, index: usize, at_ns: u64) -> Option<Link> {
        let since_ns = self.seats[index].away_since_ns()?;
        let (link, by_chance) = self.beginnings.look(since_ns, at_ns)?;
        let follows = link.as_ref().is_some_and(Link::is_soon);
        self.seats[index].dependence.add(at_ns - since_ns, follows, by_chance);
        let link = link?;
        let other = self.seats.get(link.thread as usize)?;
        let awake =
            other.is_awake_in(link.burst.saturating_sub(link.turn.saturating_sub(1))..link.burst);
        Some(Link { posted: other.had_it_within(POSTED_NS, at_ns), awake, ..link })
    }

    /// Who is woken next.
    fn first_in_line(&mut self) -> Option<(usize, u64)> {
        if self.waiting == 0 {
            self.line.clear();
        }
        while let Some((index, since_ns)) = self.line.pop_front() {
            if self.seats[index].waits_since_ns() == Some(since_ns) {
                // If it comes too late, it waits again as the last one.
                self.line.push_back((index, since_ns));
                return Some((index, since_ns));
            }
        }
        None
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, thread: ThreadId, at_ns: u64) {
        if let Some(seat) = self.seat_of(thread) {
            let waited = seat.waits_since_ns().is_some();
            seat.ends(at_ns);
            if waited {
                self.waiting = self.waiting.saturating_sub(1);
            }
        }
    }
}
