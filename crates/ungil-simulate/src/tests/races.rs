//! What a recording tells of races for the GIL, and of requests for it.

use super::recordings::only;
use super::records::{begun, company, ended, event, uses};
use super::{MS, US};
use crate::demand::{Demand, End};
use crate::naps::Naps;
use ungil_core::Kind;
use ungil_trace::record::ThreadTotals;

/// How races end for that thread, after it has slept for so long, if the first one is away for so long.
fn ends(demand: &Demand, thread: usize, slept_ns: u64, away_ns: u64) -> Vec<End> {
    let (races, random) = (&demand.threads[thread].races, &mut fastrand::Rng::with_seed(1));
    let draw = |_| races.draw(0, away_ns, slept_ns, Naps::NO_MATTER, random);
    let mut all: Vec<_> = (0..200).map(draw).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn races_count_where_others_wait_too() {
    let demand = only(&company());
    for thread in 1..demand.threads.len() {
        assert_eq!(ends(&demand, thread, 5 * MS, 80 * US), [End::Woken(45_000)]);
    }
}

#[test]
fn who_was_woken_too_late_has_slept_since_then() {
    let mut records = begun();
    for round in 0..100 {
        let at_ns = round * 10 * MS;
        event(&mut records, 0, at_ns, Kind::Acquire);
        event(&mut records, 1, at_ns + MS, Kind::Wait);
        let calls = 3 * (round % 2);
        for call in 0..calls {
            let call_ns = at_ns + 4 * MS + call * 100 * US;
            event(&mut records, 0, call_ns, Kind::ReleaseVoluntary);
            event(&mut records, 0, call_ns + 5 * US, Kind::Acquire);
        }
        let let_go_ns = at_ns + 4 * MS + calls * 100 * US;
        event(&mut records, 0, let_go_ns, Kind::ReleaseVoluntary);
        let took_ns = if calls == 0 { 30 * US } else { 9 * US };
        uses(&mut records, 1, let_go_ns + took_ns, 10 * US);
    }
    let demand = only(&ended(records, 1_000 * MS, ThreadTotals::default()));
    assert_eq!(ends(&demand, 1, 100 * US, u64::MAX), [End::Woken(9_000)]);
    assert_eq!(ends(&demand, 1, MS, u64::MAX), [End::Woken(30_000)]);
    assert_eq!(ends(&demand, 1, MS, 5_000), [End::TooLate]);
}

/// A thread uses the GIL 400 times, for 1 ms each time. Beside so many of these uses another one waits,
/// asks for it, and has it 0.4 ms later.
fn asked(often: u64) -> Demand {
    let mut records = begun();
    for number in 0..400 {
        let at_ns = number * 10 * MS;
        event(&mut records, 0, at_ns, Kind::Acquire);
        if number >= often {
            event(&mut records, 0, at_ns + MS, Kind::ReleaseVoluntary);
            continue;
        }
        event(&mut records, 1, at_ns + 100 * US, Kind::Wait);
        event(&mut records, 1, at_ns + 600 * US, Kind::DropRequest);
        event(&mut records, 0, at_ns + MS, Kind::ReleaseForced);
        uses(&mut records, 1, at_ns + MS + 5 * US, 10 * US);
        uses(&mut records, 0, at_ns + MS + 20 * US, 10 * US);
    }
    only(&ended(records, 4_000 * MS, ThreadTotals::default()))
}

#[test]
fn requests_beside_one_use_of_twenty_tell_how_soon_a_thread_answers_and_rarer_ones_nothing() {
    let answers_ns = |often| asked(often).threads[0].answers.median_ns();
    assert_eq!([10, 20, 40].map(answers_ns), [10 * US, 10 * US, 400 * US]);
}
