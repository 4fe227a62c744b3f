//! What the hook has counted in this very process and how it schedules it, for `ungil.gil`.
//!
//! The caller holds the GIL, so no other thread of this interpreter is in a hold or can end a wait
//! while the counters are read: what is read of them agrees. Threads of sub-interpreters with a
//! GIL of their own go on meanwhile; their numbers can be off by the hold or wait being ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ungil_core::control_page::LONGEST_QUANTUM_NS;
use ungil_core::schedule::{Level, Policy, Settings};
use ungil_core::table::{GROUPS, Slot, SlotState, Table};
use ungil_core::tick::{Clock, Tick};

use crate::clock;
use crate::hook::Hook;

/// Hooks the interpreter of this process. Does nothing if it is hooked already.
#[pyfunction]
pub fn gil_install() -> PyResult<()> {
    let hook = hook()?;
    hook.install().map_err(PyRuntimeError::new_err)?;
    let table = hook.table().ok_or_else(|| {
        PyRuntimeError::new_err(
            "it was forked from a process that counts its GIL, and cannot count its own",
        )
    })?;
    own_slot(hook, table).map(drop)
}

/// Whether the interpreter of this process is hooked.
#[pyfunction]
pub fn gil_installed() -> bool {
    Hook::get().is_ok_and(|hook| hook.table().is_some())
}

/// A dict for each thread that has met the GIL since the hook was installed, and lives.
#[pyfunction]
pub fn gil_stats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let hook = hook()?;
    let table = table(hook)?;
    let of = |slot: &Slot| {
        let totals = Totals::of(slot, hook.now_ticks(), table.header().tick());
        let stats = PyDict::new(py);
        stats.set_item("tid", slot.tid.load(Ordering::Relaxed))?;
        stats.set_item("ident", slot.ident.load(Ordering::Relaxed))?;
        stats.set_item("waits", totals.waits)?;
        stats.set_item("waited_ns", totals.waited_ns)?;
        stats.set_item("holds", totals.holds)?;
        stats.set_item("held_ns", totals.held_ns)?;
        stats.set_item("voluntary", totals.voluntary)?;
        stats.set_item("forced", totals.forced)?;
        stats.set_item("drop_requests", totals.drop_requests)?;
        Ok(stats)
    };
    live(table).map(of).collect()
}

/// Sums of a group of threads, and how many of them run and wait; what [`gil_totals`] returns.
type GroupTotals = (u64, u64, u64, u64, u64, u64, u64, usize, usize);

/// The sums of each group of threads, those that have ended included, in the order of
/// [`gil_thread_stats`]; and how many of its threads run, and wait at this moment. Row 0 is of
/// threads that ended in no group, the last row of those that run and are in none.
#[pyfunction]
pub fn gil_totals() -> PyResult<Vec<GroupTotals>> {
    let hook = hook()?;
    let table = table(hook)?;
    let header = table.header();
    let read = || {
        let now_ticks = hook.now_ticks();
        let mut groups = vec![GroupTotals::default(); GROUPS + 1];
        for (number, it) in (0..).zip(&mut groups[..GROUPS]) {
            let ended = header.ended.fields(number).map(|sum| sum.load(Ordering::SeqCst));
            [it.0, it.1, it.2, it.3, it.4, it.5, it.6, ..] = ended;
        }
        for slot in live(table) {
            let own = Totals::of(slot, now_ticks, header.tick()).fields();
            let group = slot.group.load(Ordering::SeqCst) as usize;
            let it = &mut groups[if (1..GROUPS).contains(&group) { group } else { GROUPS }];
            let sums =
                [&mut it.0, &mut it.1, &mut it.2, &mut it.3, &mut it.4, &mut it.5, &mut it.6];
            for (sum, own) in sums.into_iter().zip(own) {
                *sum = sum.wrapping_add(own);
            }
            it.7 += 1;
            it.8 += usize::from(slot.waiting_since_ticks.load(Ordering::Relaxed) != 0);
        }
        groups
    };
    Ok(header.ended.read(read, std::thread::yield_now))
}

/// Puts every running thread into the group of its identifier, and those of no group into `other`.
///
/// A thread that has left `threading` and goes on ending keeps the group that it had.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "it was just made of a dict")]
pub fn gil_regroup(groups: HashMap<u64, u32>, other: u32) -> PyResult<()> {
    let hook = hook()?;
    let table = table(hook)?;
    for slot in live(table) {
        let known = groups.get(&slot.ident.load(Ordering::Relaxed)).copied();
        let group = known.or((slot.group.load(Ordering::SeqCst) == 0).then_some(other));
        if let Some(group) = group {
            regroup(hook, table, slot, group)?;
        }
    }
    Ok(())
}

/// Puts the calling thread into a group.
#[pyfunction]
pub fn gil_set_group(group: u32) -> PyResult<()> {
    let hook = hook()?;
    let table = table(hook)?;
    regroup(hook, table, own_slot(hook, table)?, group)
}

fn regroup(hook: &Hook, table: Table<'static>, slot: &Slot, group: u32) -> PyResult<()> {
    if !(1..GROUPS).contains(&(group as usize)) {
        let what = format!("a group is a number from 1 to {}, not {group}", GROUPS - 1);
        return Err(PyValueError::new_err(what));
    }
    let header = table.header();
    let so_far = || Totals::of(slot, hook.now_ticks(), header.tick()).fields();
    header.ended.regroup(slot, group, so_far);
    Ok(())
}

fn live(table: Table<'static>) -> impl Iterator<Item = &'static Slot> {
    table.used_slots().iter().filter(|slot| slot.state() == Some(SlotState::Live))
}

/// How many threads found no place in the table, and are in no sum.
#[pyfunction]
pub fn gil_uncounted_threads() -> PyResult<u64> {
    let table = table(hook()?)?;
    Ok(table.header().unrecorded_threads.load(Ordering::Relaxed))
}

/// Waits, waited ns, held ns and holds of the calling thread, and how long it waited for the hold
/// that it is in, and for the one before: what is asked at each step of a request.
#[pyfunction]
pub fn gil_thread_waits() -> PyResult<(u64, u64, u64, u64, u64, u64)> {
    let hook = hook()?;
    let table = table(hook)?;
    let slot = own_slot(hook, table)?;
    let it = Totals::of(slot, hook.now_ticks(), table.header().tick());
    let (this_ns, before_ns) = slot.last_two_waits_ns();
    Ok((it.waits, it.waited_ns, it.held_ns, it.holds, this_ns, before_ns))
}

/// What [`gil_thread_stats`] returns: waits, waited ns, holds, held ns, voluntary releases, forced
/// releases, drop requests, `time.monotonic_ns()`, `time.thread_time_ns()`.
type ThreadStats = (u64, u64, u64, u64, u64, u64, u64, u64, u64);

/// The totals of the calling thread and two clocks, in one call because it is made twice for
/// each block that is measured.
#[pyfunction]
pub fn gil_thread_stats() -> PyResult<ThreadStats> {
    let hook = hook()?;
    let table = table(hook)?;
    let slot = own_slot(hook, table)?;
    let now_ticks = hook.now_ticks();
    let it = Totals::of(slot, now_ticks, table.header().tick());
    let now_ns = match Clock::from_number(table.header().clock.load(Ordering::Relaxed)) {
        // The same reading: a block that held the GIL all the time held it for as long as it took.
        Some(Clock::Monotonic) => now_ticks,
        _ => clock::now(),
    };
    Ok((
        it.waits,
        it.waited_ns,
        it.holds,
        it.held_ns,
        it.voluntary,
        it.forced,
        it.drop_requests,
        now_ns,
        clock::thread_processor(),
    ))
}

/// The name of the policy in force and its quantum in milliseconds, which stock has not, or `None`
/// where the GIL cannot be scheduled.
#[pyfunction]
pub fn gil_policy() -> Option<(&'static str, Option<f64>)> {
    let Settings { policy, quantum_ns } = Hook::get().ok()?.settings()?;
    let own_ms = Duration::from_nanos(quantum_ns).as_secs_f64() * 1e3;
    Some((policy.name(), (policy != Policy::Stock).then_some(own_ms)))
}

/// Changes the policy of this process; `false` where the GIL cannot be scheduled.
#[pyfunction]
pub fn gil_set_policy(name: &str, quantum_ms: Option<f64>) -> PyResult<bool> {
    let known = Policy::ALL.map(Policy::name);
    let policy = name.parse().map_err(|_| unknown("policy", name, &known))?;
    if policy == Policy::Stock && quantum_ms.is_some() {
        return Err(PyValueError::new_err(
            "the policy stock has no quantum: sys.setswitchinterval() sets CPython's own",
        ));
    }
    let quantum = quantum_ms.map(to_ns).transpose()?;
    Ok(Hook::get().is_ok_and(|hook| hook.set_policy(policy, quantum)))
}

fn to_ns(ms: f64) -> PyResult<u64> {
    if !(ms.is_finite() && ms > 0.0) {
        let what = format!("a quantum is a positive number of milliseconds, not {ms}");
        return Err(PyValueError::new_err(what));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    let ns = (ms * 1e6).round() as u64;
    Ok(ns.clamp(1, LONGEST_QUANTUM_NS))
}

/// The name of the calling thread's level, or `None` where the GIL cannot be scheduled.
#[pyfunction]
pub fn gil_level() -> Option<&'static str> {
    Some(Hook::get().ok()?.level()?.name())
}

/// Gives the calling thread a level and returns the name of the one it had, or `None` where the
/// GIL cannot be scheduled.
#[pyfunction]
pub fn gil_set_level(name: &str) -> PyResult<Option<&'static str>> {
    let known = Level::ALL.map(Level::name);
    let level = name.parse().map_err(|_| unknown("level", name, &known))?;
    let before = gil_level();
    if before.is_some() {
        hook()?.set_level(level);
    }
    Ok(before)
}

fn unknown(what: &str, name: &str, known: &[&str]) -> PyErr {
    PyValueError::new_err(format!(
        "unknown {what} {name:?}: it must be one of {}",
        known.join(", ")
    ))
}

/// The counters of a thread, with the hold or wait that it is in up to now.
struct Totals {
    waits: u64,
    waited_ns: u64,
    holds: u64,
    held_ns: u64,
    voluntary: u64,
    forced: u64,
    drop_requests: u64,
}

impl Totals {
    fn of(slot: &Slot, now_ticks: u64, tick: Tick) -> Self {
        let load = |field: &AtomicU64| field.load(Ordering::Relaxed);
        let running = |since: &AtomicU64| match load(since) {
            0 => 0,
            since => tick.ns(now_ticks.saturating_sub(since)),
        };
        let counters = &slot.counters;
        Self {
            waits: load(&counters.waits),
            waited_ns: load(&counters.waited_ns) + running(&slot.waiting_since_ticks),
            holds: load(&counters.holds),
            held_ns: load(&counters.held_ns) + running(&slot.holding_since_ticks),
            voluntary: load(&counters.voluntary),
            forced: load(&counters.forced),
            drop_requests: load(&counters.drop_requests),
        }
    }

    /// In the order of [`gil_thread_stats`], which is that of `Counters`.
    fn fields(&self) -> [u64; 7] {
        [
            self.waits,
            self.waited_ns,
            self.holds,
            self.held_ns,
            self.voluntary,
            self.forced,
            self.drop_requests,
        ]
    }
}

fn hook() -> PyResult<&'static Hook> {
    Hook::get().map_err(PyRuntimeError::new_err)
}

/// The slot of the calling thread. A thread that is here holds the GIL; if the hook has not seen
/// it acquire it, because it came in later or by a fork, the hold counts from now on.
fn own_slot(hook: &Hook, table: Table<'static>) -> PyResult<&'static Slot> {
    let slot = hook.slot(table).ok_or_else(|| {
        PyRuntimeError::new_err(
            "ungil cannot count so many threads, and this is one of those left out",
        )
    })?;
    if slot.holding_since_ticks.load(Ordering::Relaxed) == 0 {
        slot.holding_since_ticks.store(hook.now_ticks(), Ordering::Relaxed);
    }
    Ok(slot)
}

fn table(hook: &Hook) -> PyResult<Table<'static>> {
    hook.table().ok_or_else(|| PyRuntimeError::new_err("the hook is not installed in this process"))
}
