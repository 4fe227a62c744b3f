//! What is promised, of kernels and recorders of all kinds.

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// What a kernel makes of a counter: straight lines.
#[derive(Clone, Debug)]
struct Kernel {
    hertz: u64,
    /// Where the counter stands when the clock begins.
    first_ticks: u64,
    /// From when on, in ticks since then, it goes how much faster, in parts of a billion. A
    /// suspended computer has a clock that stands: a billion slower.
    paces: Vec<(u64, i64)>,
}

impl Kernel {
    /// The clock, which begins at an hour, in 2^-20 ns.
    fn exact(&self, ticks: u64) -> u128 {
        let mut sum = (3_600 * u128::from(S)) << 20;
        let ends = self.paces.iter().skip(1).map(|&(from, _)| from).chain([u64::MAX]);
        for (&(from, pace), to) in self.paces.iter().zip(ends) {
            let length = ticks.min(to).saturating_sub(from);
            let pace = u128::from((1_000_000_000 + pace).unsigned_abs());
            sum += ((u128::from(length) * pace) << 20) / u128::from(self.hertz);
        }
        sum
    }

    fn ns(&self, ticks: u64) -> u64 {
        u64::try_from(self.exact(ticks) >> 20).unwrap()
    }

    fn counter(&self, ticks: u64) -> u64 {
        self.first_ticks.wrapping_add(ticks)
    }

    /// A reading of both clocks that takes so many ticks; the clock is read somewhere in it.
    fn read(&self, from: u64, width: u64, place: u64) -> Reading {
        Reading {
            ticks: self.counter(from + width / 2),
            ns: self.ns(from + place.min(width)),
            width_ticks: width,
        }
    }

    fn ticks(&self, ns: u64) -> u64 {
        u64::try_from(u128::from(ns) * u128::from(self.hertz) / u128::from(S)).unwrap()
    }
}

/// How the recorder runs: how long it pauses, how long reading takes, and where in it the
/// clock is read, in ticks.
type Round = (u64, u64, u64);

fn rounds(pauses: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Round>> {
    prop::collection::vec((pauses, 20u64..400, 0u64..400), 12..120)
}

/// Pauses of a recorder that runs, that has to wait for a processor, or that is stopped.
fn pauses() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => MS / 2..6 * MS,
        2 => 6 * MS..200 * MS,
        1 => S..20 * S,
    ]
}

fn kernels() -> impl Strategy<Value = Kernel> {
    let first = prop_oneof![any::<u64>(), (0..40 * S).prop_map(|before| u64::MAX - before)];
    // NTP's correction, changed a second apart at the earliest.
    let slew = prop_oneof![Just(0i64), -20_000i64..20_000, Just(500_000), Just(-500_000)];
    let paces = prop::collection::vec((1_001 * MS..30 * S, slew), 1..40);
    (1_000_000_000u64..5_000_000_000, first, paces).prop_map(|(hertz, first_ticks, steps)| {
        let mut kernel = Kernel { hertz, first_ticks, paces: Vec::new() };
        let mut from_ns = 0;
        for (length_ns, pace) in steps {
            kernel.paces.push((kernel.ticks(from_ns), pace));
            from_ns += length_ns;
        }
        kernel
    })
}

/// A calibration by these rounds, and where the counter stood at its end.
fn calibrate(kernel: &Kernel, rounds: &[Round]) -> (Calibration, u64) {
    let mut ticks = 0;
    let mut calibration = Calibration::new(kernel.read(0, 100, 50));
    for &(pause_ns, width, place) in rounds {
        ticks += 400 + kernel.ticks(pause_ns);
        calibration.add(kernel.read(ticks, width, place));
    }
    (calibration, ticks)
}

/// Moments between the first knot and the last one, in order.
fn moments(parts: &[f64], end: u64) -> Vec<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "parts of it")]
    let mut all: Vec<u64> =
        parts.iter().map(|part| 50 + ((end - 50) as f64 * part) as u64).collect();
    all.sort_unstable();
    all
}

fn parts() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.0..1.0, 200)
}

/// Every moment is told within the error, and none before an earlier one.
fn check(kernel: &Kernel, rounds: &[Round], parts: &[f64]) -> Result<(), TestCaseError> {
    let (calibration, end) = calibrate(kernel, rounds);
    let error_ns = calibration.error_ns();
    let mut latest_ns = 0;
    for ticks in moments(parts, end) {
        let told = calibration.ns(kernel.counter(ticks));
        let off_ns = told.abs_diff(kernel.ns(ticks));
        prop_assert!(off_ns <= error_ns, "{off_ns} ns off, not {error_ns}, at {ticks}");
        prop_assert!(told >= latest_ns);
        latest_ns = told;
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_moment_is_told_within_the_error(
        kernel in kernels(),
        rounds in rounds(pauses()),
        parts in parts(),
    ) {
        check(&kernel, &rounds, &parts)?;
    }

    /// One clear bend, and readings that are so exact that nothing else is seen.
    #[test]
    fn a_change_of_pace_costs_no_more_than_the_error_says(
        hertz in 1_000_000_000u64..5_000_000_000,
        at_ns in MS..150 * MS,
        pace in -100_000_000i64..100_000_000,
        pauses in prop::collection::vec(MS..30 * MS, 12..20),
        parts in parts(),
    ) {
        let mut kernel = Kernel { hertz, first_ticks: 7, paces: vec![(0, 0)] };
        kernel.paces.push((kernel.ticks(at_ns), pace));
        let rounds: Vec<Round> = pauses.into_iter().map(|pause| (pause, 2, 1)).collect();
        check(&kernel, &rounds, &parts)?;
    }

    #[test]
    fn a_short_recording_is_as_exact_as_ntp_lets_it_be(
        hertz in 1_000_000_000u64..5_000_000_000,
        at_ns in 1..60 * MS,
        pace in -500_000i64..500_000,
        pauses in prop::collection::vec(MS / 2..50 * MS, 1..4),
        parts in parts(),
    ) {
        let mut kernel = Kernel { hertz, first_ticks: 7, paces: vec![(0, 0)] };
        kernel.paces.push((kernel.ticks(at_ns), pace));
        let rounds: Vec<Round> = pauses.into_iter().map(|pause| (pause, 2, 1)).collect();
        check(&kernel, &rounds, &parts)?;
    }

    #[test]
    fn a_recorder_that_runs_is_exact_to_the_time_that_a_reading_takes(
        mut kernel in kernels(),
        rounds in rounds(MS / 2..6 * MS),
        parts in parts(),
    ) {
        // NTP has found its pace: at an offset, without a change.
        kernel.paces.truncate(1);
        check(&kernel, &rounds, &parts)?;
        let (calibration, end) = calibrate(&kernel, &rounds);
        // Half of it at every knot, and twice that where slopes seem to differ.
        if end > kernel.ticks(20 * MS) {
            let longest_ns = 400 * S / kernel.hertz + 1;
            prop_assert!(calibration.error_ns() <= 3 * longest_ns + 3);
        }
    }

    #[test]
    fn a_suspended_computer_costs_no_more_than_the_pause_around_it(
        hertz in 1_000_000_000u64..5_000_000_000,
        at_ns in 30 * MS..300 * MS,
        hours in 1u64..1_000,
        rounds in rounds(MS / 2..6 * MS),
        parts in parts(),
    ) {
        let mut kernel = Kernel { hertz, first_ticks: 7, paces: vec![(0, 0)] };
        let (from, to) = (kernel.ticks(at_ns), kernel.ticks(at_ns + hours * 3_600 * S));
        kernel.paces.extend([(from, -1_000_000_000), (to, 0)]);
        // Nothing runs meanwhile.
        let mut ticks = 0;
        let mut calibration = Calibration::new(kernel.read(0, 100, 50));
        let mut tick = None;
        for &(pause_ns, width, place) in &rounds {
            let next = ticks + 400 + kernel.ticks(pause_ns);
            ticks = if ticks < from && next >= from { next + (to - from) } else { next };
            calibration.add(kernel.read(ticks, width, place));
            tick = if ticks < from { calibration.tick() } else { tick };
        }
        prop_assert!(calibration.error_ns() <= 17 * MS, "two stretches and the widths");
        let mut latest_ns = 0;
        for moment in moments(&parts, ticks) {
            let told = calibration.ns(kernel.counter(moment));
            prop_assert!(told >= latest_ns);
            latest_ns = told;
            prop_assert!(told.abs_diff(kernel.ns(moment)) <= calibration.error_ns());
        }
        // Lengths go on to be as long as they were.
        if let (Some(before), Some(after)) = (tick, calibration.tick()) {
            prop_assert!(before.ns(S).abs_diff(after.ns(S)) < MS);
        }
    }

    #[test]
    fn what_was_told_once_is_told_again(
        kernel in kernels(),
        rounds in rounds(pauses()),
        parts in parts(),
    ) {
        let half = rounds.len() / 2;
        let (early, end) = calibrate(&kernel, &rounds[..half]);
        let (late, _) = calibrate(&kernel, &rounds);
        for ticks in moments(&parts, end) {
            let ticks = kernel.counter(ticks);
            prop_assert_eq!(early.ns(ticks), late.ns(ticks));
        }
    }

    #[test]
    fn a_counter_that_begins_anew_does_not_turn_the_clock_back(
        kernel in kernels(),
        before in rounds(pauses()),
        after in rounds(pauses()),
        parts in parts(),
    ) {
        // No computer has run for so long that its counter has come to half of what it holds.
        let kernel = Kernel { first_ticks: kernel.first_ticks >> 2 | 1 << 60, ..kernel };
        let (mut calibration, end) = calibrate(&kernel, &before);
        let mut latest_ns = calibration.ns(kernel.counter(end));
        // A register that is 0 again; the clock goes on.
        let anew = |ticks: u64| ticks - end;
        let mut ticks = end;
        for (pause_ns, width, place) in after {
            ticks += 400 + kernel.ticks(pause_ns);
            let reading = kernel.read(ticks, width, place);
            calibration.add(Reading { ticks: anew(ticks + width / 2), ..reading });
        }
        let first = end + 400 + kernel.ticks(20 * S);
        for moment in moments(&parts, ticks).into_iter().filter(|&moment| moment > end) {
            let told = calibration.ns(anew(moment));
            prop_assert!(told >= latest_ns);
            latest_ns = told;
            // What happened before the first reading is told to have happened then.
            if moment > first {
                prop_assert!(told.abs_diff(kernel.ns(moment)) <= calibration.error_ns());
            }
        }
    }

    #[test]
    fn no_number_makes_it_panic(
        readings in prop::collection::vec(any::<(u64, u64, u64)>(), 1..40),
        moments in prop::collection::vec(any::<u64>(), 1..40),
    ) {
        let read = |&(ticks, ns, width_ticks)| Reading { ticks, ns, width_ticks };
        let mut calibration = Calibration::new(read(&readings[0]));
        for reading in &readings {
            calibration.add(read(reading));
            for &ticks in &moments {
                calibration.ns(ticks);
                calibration.covers(ticks);
            }
            calibration.error_ns();
            calibration.tick();
        }
    }
}

#[test]
fn nothing_happens_before_the_first_knot_or_after_the_last_one() {
    let kernel = Kernel { hertz: 2_600_000_000, first_ticks: 1 << 40, paces: vec![(0, 0)] };
    let (calibration, end) = calibrate(&kernel, &[(5 * MS, 100, 50), (5 * MS, 100, 50)]);
    assert_eq!(calibration.ns(0), kernel.ns(50));
    assert_eq!(calibration.ns(kernel.counter(end + S)), kernel.ns(end + 50));
    assert!(calibration.covers(kernel.counter(end)));
    assert!(!calibration.covers(kernel.counter(end + S)));
}

#[test]
fn hours_are_remembered_in_little_memory() {
    let kernel = Kernel { hertz: 3_000_000_000, first_ticks: 0, paces: vec![(0, 12_345)] };
    let mut calibration = Calibration::new(kernel.read(0, 90, 40));
    let pause = kernel.ticks(5 * MS);
    let rounds = 4 * 3_600 * S / (5 * MS);
    for round in 1..=rounds {
        calibration.add(kernel.read(round * pause, 90, round % 90));
    }
    assert!(calibration.knots.len() <= KNOTS + 1);
    let error_ns = calibration.error_ns();
    assert!(error_ns < 100, "{error_ns}");
    // The beginning, too, since the kernel has kept its pace.
    for ticks in (50..rounds * pause).step_by(999_999_999_999) {
        assert!(calibration.ns(ticks).abs_diff(kernel.ns(ticks)) <= error_ns);
    }
}
