//! The processed profile format of the Firefox Profiler (<https://profiler.firefox.com>).
//!
//! A track for each thread: holds and waits are markers with schemas, and the stacks of holds are
//! samples whose weight is time that others waited meanwhile, in milliseconds. So the flame graph of a
//! thread says which code of it made others wait. Of very many markers the longest are kept: the
//! profiler reads its file whole.

use crate::functions::Functions;
use crate::known::End;
use crate::longest::Longest;
use crate::markers::{Filled, hold_schema, note_schema, wait_schema};
use crate::parts::{Part, Parts};
use crate::stacks::{StackFrame, StackId};
use crate::stretches::{Stretch, Stretches, Wait};
use crate::weights::{NO_STACK, process_label, thread_label};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerTiming,
    MarkerTypeHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle,
    Timestamp, WeightType,
};
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;
use ungil_trace::Record;
use ungil_trace::origin::Origin;
use ungil_trace::record::ThreadId;

const MILLISECOND_NS: u64 = 1_000_000;
/// Threads that are shown at first: those that waited and held most.
const VISIBLE: usize = 20;

/// What is missing from an export, because there was too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// How many holds and waits; the others are all longer.
    pub markers: u64,
    /// What these add up to.
    pub markers_ns: u64,
}

/// Makes a profile.
#[derive(Debug)]
pub struct Firefox {
    stretches: Stretches,
    made: Made,
}

#[derive(Debug)]
struct Made {
    marks: Longest<Mark>,
    /// Thread, time, stack and time that others waited.
    samples: Vec<(ThreadId, u64, Option<StackId>, u64)>,
    parts: Parts,
    /// What each thread waited and held.
    busy_ns: HashMap<ThreadId, u64>,
}

#[derive(Debug)]
enum Mark {
    Hold {
        thread: ThreadId,
        gil: u8,
        begin_ns: u64,
        end_ns: u64,
        end: End,
        waited_ns: u64,
        waiters_max: u64,
        unanswered_ns: u64,
        cpu_ns: Option<u64>,
        stack: Option<StackId>,
    },
    Wait(Wait),
}

impl Mark {
    fn begin_ns(&self) -> u64 {
        match self {
            Self::Hold { begin_ns, .. } => *begin_ns,
            Self::Wait(wait) => wait.begin_ns,
        }
    }
}

impl Firefox {
    /// Of what happens from `from_ns` on and before `to_ns`, with at most `most` markers.
    pub fn new(most: usize, from_ns: u64, to_ns: u64) -> Self {
        let made = Made {
            marks: Longest::new(most),
            samples: Vec::new(),
            parts: Parts::default(),
            busy_ns: HashMap::new(),
        };
        Self { stretches: Stretches::new(from_ns, to_ns), made }
    }

    /// When the first process started.
    pub fn started_ns(&self) -> u64 {
        self.stretches.started_ns()
    }

    /// Takes in one record.
    pub fn push(&mut self, record: &Record) {
        let Self { stretches, made } = self;
        stretches.push(record, &mut |_, stretch| made.add(stretch));
    }

    /// Writes the profile; `unix_ns` is when the trace began, in ns since 1970.
    pub fn write(mut self, unix_ns: u64, out: &mut impl Write) -> io::Result<Omitted> {
        let Self { stretches, made } = &mut self;
        stretches.finish(&mut |_, stretch| made.add(stretch));
        made.parts.finish(&mut |part| sample(&mut made.samples, part));
        let Self { stretches, made } = self;
        let (mut marks, markers, markers_ns) = made.marks.into_parts();
        marks.sort_unstable_by_key(Mark::begin_ns);
        let mut samples = made.samples;
        samples.sort_unstable_by_key(|&(thread, at_ns, ..)| (thread, at_ns));
        let omitted = Omitted { markers, markers_ns };
        let mut building = Building::new(&stretches, unix_ns);
        building.threads(&made.busy_ns);
        building.note(omitted);
        for mark in &marks {
            building.mark(mark);
        }
        building.samples(&samples);
        building.functions.write(&building.profile, out)?;
        out.flush()?;
        Ok(omitted)
    }
}

impl Made {
    fn add(&mut self, stretch: Stretch) {
        self.parts.push(&stretch, &mut |part| sample(&mut self.samples, part));
        let (thread, length_ns, mark) = match stretch {
            Stretch::Look(_) => return,
            Stretch::Hold(hold) => {
                let longest = hold.samples.iter().max_by_key(|sample| sample.held_ns);
                (
                    hold.thread,
                    hold.end_ns - hold.begin_ns,
                    Mark::Hold {
                        thread: hold.thread,
                        gil: hold.gil,
                        begin_ns: hold.begin_ns,
                        end_ns: hold.end_ns,
                        end: hold.end,
                        waited_ns: hold.waited_ns,
                        waiters_max: hold.waiters_max,
                        unanswered_ns: hold.asked_ns.map_or(0, |ns| hold.end_ns.saturating_sub(ns)),
                        cpu_ns: hold.cpu_ns,
                        stack: longest.map(|sample| sample.stack),
                    },
                )
            }
            Stretch::Wait(wait) => (wait.thread, wait.end_ns - wait.begin_ns, Mark::Wait(wait)),
        };
        *self.busy_ns.entry(thread).or_default() += length_ns;
        self.marks.push(length_ns, mark);
    }
}

/// Only what somebody waited for is a sample; of what was looked at, every look.
fn sample(samples: &mut Vec<(ThreadId, u64, Option<StackId>, u64)>, part: Part) {
    if part.waited_ns > 0 || part.stack.is_some() {
        samples.push((part.thread, part.at_ns, part.stack, part.waited_ns));
    }
}

/// A profile that is being made.
struct Building<'a> {
    profile: Profile,
    stretches: &'a Stretches,
    handles: HashMap<ThreadId, ThreadHandle>,
    first: Option<ThreadHandle>,
    categories: Categories,
    functions: Functions,
    hold_type: MarkerTypeHandle,
    wait_type: MarkerTypeHandle,
    note_type: MarkerTypeHandle,
    stacks: HashMap<(ThreadId, Option<StackId>), Option<StackHandle>>,
}

struct Categories {
    held: CategoryHandle,
    kept: CategoryHandle,
    waited: CategoryHandle,
    user: CategoryHandle,
    package: CategoryHandle,
    python: CategoryHandle,
    native: CategoryHandle,
}

impl<'a> Building<'a> {
    fn new(stretches: &'a Stretches, unix_ns: u64) -> Self {
        let reference =
            ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_nanos(unix_ns));
        let interval = SamplingInterval::from_millis(1);
        let mut profile = Profile::new("ungil: who waited for the GIL", reference, interval);
        profile.set_os_name("Linux");
        profile.set_symbolicated(true);
        let mut category = |name, colour| profile.add_category(name, colour);
        let categories = Categories {
            held: category("held the GIL", CategoryColor::Blue),
            kept: category("held the GIL while others waited", CategoryColor::Red),
            waited: category("waited for the GIL", CategoryColor::Orange),
            user: category("your code", CategoryColor::Green),
            package: category("package", CategoryColor::Purple),
            python: category("standard library", CategoryColor::Yellow),
            native: category("native code", CategoryColor::LightBlue),
        };
        let hold_type = profile.register_marker_type(hold_schema());
        let wait_type = profile.register_marker_type(wait_schema());
        let note_type = profile.register_marker_type(note_schema());
        Self {
            profile,
            stretches,
            handles: HashMap::new(),
            first: None,
            categories,
            functions: Functions::default(),
            hold_type,
            wait_type,
            note_type,
            stacks: HashMap::new(),
        }
    }

    fn at(&self, ns: u64) -> Timestamp {
        let since_ns = ns.saturating_sub(self.stretches.started_ns());
        Timestamp::from_nanos_since_reference(since_ns)
    }

    /// A track for each thread that did anything.
    fn threads(&mut self, busy_ns: &HashMap<ThreadId, u64>) {
        let mut known: Vec<_> = self.stretches.threads.iter().collect();
        known.sort_unstable_by_key(|(id, _)| **id);
        let mut processes = HashMap::new();
        for (id, thread) in known {
            let id = ThreadId(*id);
            let Some(owner) = self.stretches.processes.get(&thread.process.0) else { continue };
            if !busy_ns.contains_key(&id) {
                continue;
            }
            let began = self.at(owner.process.at_ns);
            let process = *processes.entry(thread.process).or_insert_with(|| {
                let name = process_label(self.stretches, thread.process);
                self.profile.add_process(&name, owner.process.pid, began)
            });
            if let Some(ended_ns) = owner.ended_ns {
                self.profile.set_process_end_time(process, self.at(ended_ns));
            }
            let (begin_ns, end_ns) =
                (thread.started_ns, thread.ended_ns.unwrap_or(self.stretches.end_ns()));
            let is_main = thread.tid == owner.process.pid;
            let handle = self.profile.add_thread(process, thread.tid, self.at(begin_ns), is_main);
            self.profile.set_thread_name(handle, &thread_label(self.stretches, id));
            self.profile.set_thread_end_time(handle, self.at(end_ns.max(begin_ns)));
            self.profile.set_thread_show_markers_in_timeline(handle, true);
            self.profile.set_thread_samples_weight_type(handle, WeightType::TracingMs);
            self.handles.insert(id, handle);
        }
        let mut busiest: Vec<_> = busy_ns.iter().map(|(id, ns)| (*ns, *id)).collect();
        busiest.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in busiest.iter().take(VISIBLE) {
            if let Some(handle) = self.handles.get(id) {
                self.profile.add_initial_visible_thread(*handle);
                self.first.get_or_insert(*handle);
            }
        }
        if let Some(first) = self.first {
            self.profile.add_initial_selected_thread(first);
        }
    }

    /// Says on the busiest track what is missing.
    fn note(&mut self, omitted: Omitted) {
        let Some(thread) = self.first.filter(|_| omitted.markers > 0) else { return };
        let text = format!(
            "{} shorter holds and waits, {:.3} s in all, are left out",
            omitted.markers,
            omitted.markers_ns as f64 / 1e9
        );
        let note = Filled {
            kind: self.note_type,
            name: self.profile.intern_string("left out"),
            category: self.categories.held,
            texts: vec![self.profile.intern_string(&text)],
            numbers: Vec::new(),
        };
        let start = MarkerTiming::Instant(Timestamp::from_nanos_since_reference(0));
        self.profile.add_marker(thread, start, note);
    }

    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Hold { thread, begin_ns, end_ns, waited_ns, stack, .. } => {
                let Some(&handle) = self.handles.get(thread) else { return };
                let timing = MarkerTiming::Interval(self.at(*begin_ns), self.at(*end_ns));
                let category =
                    if *waited_ns > 0 { self.categories.kept } else { self.categories.held };
                let marker = self.hold(mark, category);
                let marker = self.profile.add_marker(handle, timing, marker);
                if stack.is_some() {
                    let stack = self.stack(*thread, handle, *stack);
                    self.profile.set_marker_stack(handle, marker, stack);
                }
            }
            Mark::Wait(wait) => {
                let Some(&handle) = self.handles.get(&wait.thread) else { return };
                let timing = MarkerTiming::Interval(self.at(wait.begin_ns), self.at(wait.end_ns));
                let culprit = wait.culprit.map_or_else(
                    || "nobody: it was being handed over".to_owned(),
                    |culprit| thread_label(self.stretches, culprit),
                );
                let marker = Filled {
                    kind: self.wait_type,
                    name: self.profile.intern_string(&named("wait", wait.gil)),
                    category: self.categories.waited,
                    texts: vec![self.profile.intern_string(&culprit)],
                    numbers: vec![f64::from(wait.drop_requests)],
                };
                self.profile.add_marker(handle, timing, marker);
            }
        }
    }

    fn hold(&mut self, mark: &Mark, category: CategoryHandle) -> Filled {
        let Mark::Hold { gil, end, waited_ns, waiters_max, unanswered_ns, cpu_ns, .. } = mark
        else {
            unreachable!("only holds are given")
        };
        let release = match end {
            End::Voluntary => "voluntary",
            End::Forced => "forced",
            End::Unseen => "not seen",
        };
        let ms = |ns: u64| ns as f64 / MILLISECOND_NS as f64;
        Filled {
            kind: self.hold_type,
            name: self.profile.intern_string(&named("hold", *gil)),
            category,
            texts: vec![self.profile.intern_string(release)],
            numbers: vec![
                ms(*waited_ns),
                *waiters_max as f64,
                ms(*unanswered_ns),
                // Not a number is null in JSON, and not shown.
                cpu_ns.map_or(f64::NAN, ms),
            ],
        }
    }

    /// Samples of a thread follow one another.
    fn samples(&mut self, samples: &[(ThreadId, u64, Option<StackId>, u64)]) {
        let mut threads: Vec<_> = self.handles.iter().map(|(id, handle)| (*id, *handle)).collect();
        threads.sort_unstable_by_key(|(id, _)| *id);
        for (id, handle) in threads {
            let from = samples.partition_point(|(thread, ..)| *thread < id);
            let to = samples.partition_point(|(thread, ..)| *thread <= id);
            let known = self.stretches.threads.get(&id.0);
            let begin_ns = known.map_or(0, |known| known.started_ns);
            // A track without a sample has no place in the profiler.
            let weight = self.functions.weight(0);
            self.profile.add_sample(handle, self.at(begin_ns), None, CpuDelta::ZERO, weight);
            for &(_, at_ns, stack, waited_ns) in &samples[from..to] {
                let weight = self.functions.weight(waited_ns);
                let stack = self.stack(id, handle, stack);
                let at = self.at(at_ns.max(begin_ns));
                self.profile.add_sample(handle, at, stack, CpuDelta::ZERO, weight);
            }
        }
    }

    fn stack(
        &mut self,
        thread: ThreadId,
        handle: ThreadHandle,
        stack: Option<StackId>,
    ) -> Option<StackHandle> {
        if let Some(made) = self.stacks.get(&(thread, stack)) {
            return *made;
        }
        let unseen = [StackFrame::Label(NO_STACK.to_owned())];
        let lines = stack.map_or(&unseen[..], |stack| self.stretches.stacks.frames(stack));
        let frames: Vec<_> = lines
            .iter()
            .rev()
            .map(|frame| FrameInfo {
                frame: Frame::Label(self.profile.intern_string(&self.functions.label(frame))),
                category_pair: self.categories.of(frame).into(),
                flags: match frame {
                    // The profiler tells two kinds of frames apart, its "script" and its "native".
                    StackFrame::Python(_) => FrameFlags::IS_JS,
                    StackFrame::Label(_) | StackFrame::Native(_) => FrameFlags::empty(),
                },
            })
            .collect();
        let made = self.profile.intern_stack_frames(handle, frames.into_iter());
        self.stacks.insert((thread, stack), made);
        made
    }
}

impl Categories {
    fn of(&self, frame: &StackFrame) -> CategoryHandle {
        match frame {
            StackFrame::Label(_) => self.held,
            StackFrame::Native(_) => self.native,
            StackFrame::Python(frame) => match frame.origin() {
                Origin::User => self.user,
                Origin::Package(_) => self.package,
                Origin::Python => self.python,
            },
        }
    }
}

/// GILs of sub-interpreters have names of their own, and so rows of their own.
fn named(what: &str, gil: u8) -> String {
    if gil == 0 { what.to_owned() } else { format!("{what} (GIL {gil})") }
}
