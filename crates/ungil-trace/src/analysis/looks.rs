//! What looks at one thread showed, in memory that does not grow with the trace.
//!
//! A long gap counts as a whole for what the look at it showed: off the GIL a thread runs no Python
//! code, so it is in the same line all the time. What it does there in native code may change, and
//! the look shows one moment of that. Of shorter gaps there are samples; how long all of them were is
//! known ([`ShortGaps`]).

use super::called::called;
use super::functions::Functions;
use super::length::{Sum, seconds};
use super::native_loop::NativeLoop;
use super::off_gil::what;
use super::on_loop::OnLoop;
use super::samples::line_of;
use super::short_gaps::{Sampled, ShortGaps};
use crate::origin::Users;
use crate::record::{Doing, Frame};
use crate::report::{EventLoop, HeldIn, OffGil, What};

/// Different things that are kept of what a thread does off the GIL, and frames of each.
const PLACES: usize = 16;
const FRAMES: usize = 40;

/// What looks at a thread showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    places: Vec<Place>,
    gap: Gap,
    short: ShortGaps,
    held: Functions,
    on_loop: OnLoop,
    native_loop: NativeLoop,
}

/// What is known of the gap that goes on.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// The place that a sample found and how long the thread had not been looked at before. A place
    /// is `None` if it is none of those that are kept.
    sampled: Option<(Option<usize>, u64)>,
    /// The place that a look at the whole gap found.
    told: Option<Found>,
}

/// A place that a look found; `None` if it is none of those that are kept.
#[derive(Clone, Copy, Debug)]
struct Found(Option<usize>);

/// What a thread did off the GIL.
#[derive(Clone, Debug)]
struct Place {
    what: What,
    on_event_loop: bool,
    call: String,
    on: String,
    user_frame: Option<String>,
    stack: Vec<String>,
    gaps: Sum,
    sampled: Sampled,
}

impl Looks {
    /// Takes in what a look at `at_ns` showed; `since_ns` is when the hold began that goes on.
    pub(super) fn add(
        &mut self,
        at_ns: u64,
        since_ns: Option<u64>,
        doing: &Doing,
        frames: &[Frame],
    ) {
        let frames = &*self.native_loop.shown(doing, frames);
        self.on_loop.look(at_ns, since_ns, doing, frames);
        match doing {
            Doing::Held { waiters: 0 } => {}
            Doing::Held { waiters } => {
                let users = Users::of(frames);
                self.held.add(*waiters, &called(frames, users));
            }
            Doing::Off { stands_for_ns, call, on } => self.off(*stands_for_ns, call, on, frames),
        }
    }

    /// A long hold is over, in which the thread ran for so long.
    pub(super) fn end_long_hold(&mut self, start_ns: u64, end_ns: u64, ran_ns: u64) {
        self.on_loop.end_long_hold(start_ns, end_ns, ran_ns);
    }

    /// A gap is over, after so long off the GIL.
    #[inline]
    pub(super) fn end_gap(&mut self, ns: u64) {
        let Gap { sampled, told } = std::mem::take(&mut self.gap);
        if let Some(Found(place)) = told {
            self.short.tell(ns);
            if let Some(place) = place.and_then(|place| self.places.get_mut(place)) {
                place.gaps.add(ns);
                place.sampled.tell(ns);
            }
        } else {
            self.short.add(ns);
        }
        // Of a gap that was told of as a whole it says, too, where others were that were as long.
        if let Some((place, unseen_ns)) = sampled {
            self.short.sample(ns, unseen_ns);
            if let Some(place) = place.and_then(|place| self.places.get_mut(place)) {
                place.sampled.add(ns, unseen_ns);
                place.sampled.samples += u64::from(told.is_none());
            }
        }
    }

    /// The same, with nothing counted yet.
    pub(super) fn reopened(&self) -> Self {
        let (on_loop, native_loop) = (self.on_loop.reopened(), self.native_loop.clone());
        let Some(Found(told)) = self.gap.told else {
            return Self { on_loop, native_loop, ..Self::default() };
        };
        let nothing = |place: &Place| Place {
            gaps: Sum::default(),
            sampled: Sampled::default(),
            ..place.clone()
        };
        let place = told.and_then(|place| self.places.get(place)).map(nothing);
        let gap = Gap { sampled: None, told: Some(Found(place.is_some().then_some(0))) };
        let places = place.into_iter().collect();
        Self { places, gap, on_loop, native_loop, ..Self::default() }
    }

    fn off(&mut self, stands_for_ns: u64, call: &str, on: &str, frames: &[Frame]) {
        let (what, on_event_loop) = what(call, on, frames);
        let innermost = frames.first().map(line_of);
        let users = Frame::innermost_of_the_user(frames).map(line_of);
        let is_it = |place: &Place| {
            (place.what, place.on_event_loop) == (what, on_event_loop)
                && (place.call == call && place.on == on)
                && place.stack.first() == innermost.as_ref()
                && place.user_frame == users
        };
        let place = self.places.iter().position(is_it).or_else(|| {
            (self.places.len() < PLACES).then(|| {
                self.places.push(Place {
                    what,
                    on_event_loop,
                    call: call.to_owned(),
                    on: on.to_owned(),
                    user_frame: users,
                    stack: frames.iter().take(FRAMES).map(line_of).collect(),
                    gaps: Sum::default(),
                    sampled: Sampled::default(),
                });
                self.places.len() - 1
            })
        });
        match stands_for_ns {
            0 => self.gap.told = Some(Found(place)),
            _ => self.gap.sampled = Some((place, stands_for_ns)),
        }
    }

    /// Where it held while others waited, most waiters first, outer functions before inner ones.
    pub(super) fn held_in(&self) -> Vec<HeldIn> {
        self.held.held_in()
    }

    /// How long it computed on an event loop; `None` if no look found it in one.
    pub(super) fn event_loop(&self) -> Option<EventLoop> {
        self.on_loop.report()
    }

    /// What it did off the GIL, longest in all first.
    pub(super) fn off_gil(&self) -> Vec<OffGil> {
        let is_counted = |place: &&Place| place.gaps.count > 0 || place.sampled.samples > 0;
        let counted = self.places.iter().filter(is_counted);
        let mut places: Vec<OffGil> = counted.map(|place| place.report(&self.short)).collect();
        places.sort_by(|a, b| b.total_s.total_cmp(&a.total_s));
        places
    }
}

impl Place {
    fn report(&self, short: &ShortGaps) -> OffGil {
        let sampled_ns = self.sampled.length_ns(short);
        OffGil {
            what: self.what,
            on_event_loop: self.on_event_loop,
            call: self.call.clone(),
            on: self.on.clone(),
            frame: self.stack.first().cloned(),
            user_frame: self.user_frame.clone(),
            stack: self.stack.clone(),
            gaps: self.gaps.count,
            samples: self.sampled.samples,
            total_s: seconds(self.gaps.total_ns.saturating_add(sampled_ns)),
            sampled_s: seconds(sampled_ns),
            longest_ms: self.gaps.max_ns as f64 / 1e6,
        }
    }
}
