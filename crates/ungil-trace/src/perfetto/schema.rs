//! What the numbers and names in a trace file mean.
//!
//! Source of the field numbers: `protos/perfetto/trace` in the Perfetto repository; the module of
//! each message is named after it. `tests/test_perfetto_format.py` checks them against Perfetto's
//! own protobuf classes.

use crate::record::{ProcessId, ProcessTotals, ThreadId, ThreadTotals};

/// Version of the instants and annotations that `ungil` puts into a trace. It changes when an
/// older reader would misunderstand a newer trace.
pub const SCHEMA: u64 = 1;

/// `Trace.packet`.
pub const TRACE_PACKET: u32 = 1;
/// `DebugAnnotation`s of a `TrackEvent`.
pub const DEBUG_ANNOTATIONS: u32 = 4;

/// `TracePacket`.
pub mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const COMPRESSED_PACKETS: u32 = 50;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const FIRST_ON_SEQUENCE: u32 = 87;

    /// `sequence_flags` of the packet that brings interned names and defaults.
    pub const STATE_CLEARED: u64 = 1;
    /// `sequence_flags` of a packet that relies on them.
    pub const NEEDS_STATE: u64 = 2;
}

/// `TrackEvent`, and `TrackEventDefaults` (which has `TRACK_UUID` under the same number).
pub mod track_event {
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const NAME: u32 = 23;

    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
}

/// `DebugAnnotation`.
pub mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL: u32 = 2;
    pub const UINT: u32 = 3;
    pub const STRING: u32 = 6;
    pub const NAME: u32 = 10;
    pub const ARRAY: u32 = 12;
}

/// `InternedData`, and the two fields of each of its entries.
pub mod interned {
    pub const EVENT_NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;

    pub const IID: u32 = 1;
    pub const NAME: u32 = 2;
}

/// `TrackDescriptor`, `ProcessDescriptor` and `ThreadDescriptor`.
pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;

    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_CMDLINE: u32 = 2;
    pub const PROCESS_NAME: u32 = 6;

    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
}

/// `ClockSnapshot` and its `Clock`.
pub mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY: u32 = 2;

    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;

    /// `BuiltinClock`.
    pub const REALTIME: u64 = 1;
    /// The clock of every time in a trace.
    pub const MONOTONIC: u64 = 3;
    pub const BOOTTIME: u64 = 6;
}

/// Names of events on the sequence of a thread; the number of a name is its place, from 1.
pub const EVENT_NAMES: [&str; 5] = ["wait", "hold", "drop request", "release", "ran"];
pub const WAIT: u64 = 1;
pub const HOLD: u64 = 2;
pub const DROP_REQUEST: u64 = 3;
/// An instant: a release whose hold is not in the trace, because its acquire was lost.
pub const RELEASE: u64 = 4;
/// An instant in a long hold: it would have ended then, had its thread run all the time.
pub const RAN: u64 = 5;

/// Names of annotations on the sequence of a thread, numbered likewise.
pub const ANNOTATION_NAMES: [&str; 7] =
    ["gil", "release", "culprit", "culprit_tid", "unfinished", "cpu_ns", "blocked"];
/// Which GIL, if it is not 0; on a slice, with its begin.
pub const GIL: u64 = 1;
/// `voluntary` or `forced`; at the end of a `hold`, or with an instant `release`.
pub const RELEASE_KIND: u64 = 2;
/// Name of the thread that held longest during a wait; at its end.
pub const CULPRIT: u64 = 3;
/// Its kernel thread id.
pub const CULPRIT_TID: u64 = 4;
/// `true` on a slice whose real end is not in the trace; its end is no event.
pub const UNFINISHED: u64 = 5;
/// For how long the thread ran, with an instant `ran` in a hold; for people, as it follows.
pub const CPU_NS: u64 = 6;
/// `true` with an instant `ran` if the thread blocked meanwhile.
pub const BLOCKED: u64 = 7;

/// The annotations of `process started` with the processors that a process may use; an older trace
/// has none of them, and a process without a CPU limit has no second one.
pub const PROCESSORS: &str = "processors";
pub const CPU_LIMIT: &str = "cpu_limit_thousandths";

/// The annotation of `stack` that only a sample with native frames has.
pub const NATIVE: &str = "native";

/// A park: a slice on the track of its thread, on the common sequence. All that is known of it is at
/// its end.
pub const PARKED: &str = "parked";
/// What parks call the stacks that they were in, and ended from.
pub const STACK: &str = "stack";
pub const WAKER_STACK: &str = "waker_stack";
/// An instant on the track of a process: a stack, with its number.
pub const PARK_STACK: &str = "park stack";
/// Another one: when the GIL of a free-threaded build was seen to be on.
pub const GIL_SWITCHED_ON: &str = "gil switched on";

pub const VOLUNTARY: &str = "voluntary";
pub const FORCED: &str = "forced";

/// `trusted_packet_sequence_id` of everything but the GIL events of a thread.
pub const COMMON_SEQUENCE: u32 = 1;

/// The sequence of a thread's GIL events, if there are numbers left for it.
pub fn sequence_of(thread: ThreadId) -> Option<u32> {
    thread.0.checked_add(COMMON_SEQUENCE + 1)
}

/// A track, as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The track `ungil`, for what concerns the trace as a whole.
    Root,
    /// That of a process.
    Process(ProcessId),
    /// That of a thread.
    Thread(ThreadId),
}

const PROCESS_UUIDS: u64 = 1 << 32;
const THREAD_UUIDS: u64 = 2 << 32;

impl Track {
    /// Its uuid. Ids are unique in a trace, and so a reused pid or an image after exec has a
    /// track of its own; that is how `trace_processor` tells such processes apart.
    pub fn uuid(self) -> u64 {
        match self {
            Self::Root => 1,
            Self::Process(process) => PROCESS_UUIDS | u64::from(process.0),
            Self::Thread(thread) => THREAD_UUIDS | u64::from(thread.0),
        }
    }

    /// The track with this uuid.
    #[allow(clippy::cast_possible_truncation, reason = "the low half is the id")]
    pub fn from_uuid(uuid: u64) -> Option<Self> {
        match uuid & !u64::from(u32::MAX) {
            0 if uuid == 1 => Some(Self::Root),
            PROCESS_UUIDS => Some(Self::Process(ProcessId(uuid as u32))),
            THREAD_UUIDS => Some(Self::Thread(ThreadId(uuid as u32))),
            _ => None,
        }
    }
}

/// The annotations of `thread totals`.
pub fn thread_totals(totals: &mut ThreadTotals) -> [(&'static str, &mut u64); 11] {
    [
        ("waits", &mut totals.waits),
        ("waited_ns", &mut totals.waited_ns),
        ("holds", &mut totals.holds),
        ("held_ns", &mut totals.held_ns),
        ("voluntary", &mut totals.voluntary),
        ("forced", &mut totals.forced),
        ("drop_requests", &mut totals.drop_requests),
        ("cpu_ns", &mut totals.cpu_ns),
        ("voluntary_switches", &mut totals.voluntary_switches),
        ("involuntary_switches", &mut totals.involuntary_switches),
        ("lost_events", &mut totals.lost_events),
    ]
}

/// The annotations of `process totals` that only a free-threaded build has.
pub fn free_threaded_totals(totals: &mut ProcessTotals) -> [(&'static str, &mut u64); 2] {
    [("gil_state", &mut totals.gil_state), ("gil_on_ns", &mut totals.gil_on_ns)]
}

/// The annotation of `process totals` that an older trace may lack: it is of `CLOCK_MONOTONIC` then.
pub const CLOCK_ERROR: &str = "clock_error_ns";

/// The annotations of `process totals`.
pub fn process_totals(totals: &mut ProcessTotals) -> [(&'static str, &mut u64); 4] {
    [
        ("switch_interval_ns", &mut totals.switch_interval_ns),
        ("policy", &mut totals.policy),
        ("unrecorded_threads", &mut totals.unrecorded_threads),
        (CLOCK_ERROR, &mut totals.clock_error_ns),
    ]
}
