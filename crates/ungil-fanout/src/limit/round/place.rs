//! Where the latencies of a round lie, and whether those of one lie higher than those of another.

/// The shares of a round whose quickest members are averaged. Comparisons use the first that both
/// sides have. A round is judged when the second is known, or the third where time matters more; the
/// slowest tenth is never worth waiting for.
pub(super) const SHARES: [f32; 3] = [0.9, 0.6, 0.3];

/// Nothing is known to better than one percent.
const SHARPEST: f32 = 0.01;

/// With fewer members than this the error itself is hardly known.
const HANDFUL: f32 = 4.0;

/// Then it is larger by this: what is seen is hardly believed.
const UNSURE: f32 = 0.5;

/// Latencies relative to what each host usually takes are preferred if their error is less than this
/// share of that of the others. Well below one: they are late to notice what has changed for all.
const SAYS_MORE: f32 = 0.6;

/// As long as nothing is known items are taken to differ by this, as the standard deviation of a
/// logarithm: as those with exponential latencies do.
pub(in crate::limit) const UNKNOWN_NOISE: f32 = 1.0;

/// A loop that has other things to do is late by about this, ns; a service has nothing to do with it.
pub(in crate::limit) const LOOP_DELAY_NS: f32 = 2e6;

/// Where the latencies of a round lie: the logarithm of a typical one, and by how much chance alone
/// may have moved it (one standard error).
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    mean: f32,
    error: f32,
}

pub(super) type Spots = [Option<Spot>; SHARES.len()];

/// What a round has found.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct Place {
    /// How many items were running, on average, when a member started.
    pub level: f32,
    /// How many members it is based on.
    pub weight: f32,
    /// What latencies may differ by for reasons of this process, ns.
    pub(super) own_ns: f32,
    pub(super) all: Spots,
    pub(super) own: Spots,
}

/// By how much one place is slower than another, in units of natural logarithm.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct Gap {
    pub rise: f32,
    /// One standard error.
    pub error: f32,
}

impl Place {
    /// Of a hundred items that are known by now.
    #[cfg(test)]
    pub fn known(level: f32, latency_ns: f32, error: f32) -> Self {
        let all = [Some(Spot { mean: latency_ns.ln(), error }); SHARES.len()];
        Self { level, weight: 100.0, own_ns: 0.0, all, own: [None; SHARES.len()] }
    }

    /// How much slower than `before` this place is.
    ///
    /// Latencies relative to what each host usually takes are preferred if they say more, as with
    /// different hosts that are visited often; with one service they say the same.
    ///
    /// What the two differ by for reasons of this process is no difference.
    pub fn since(&self, before: &Self) -> Gap {
        let gap = match (gap(&self.all, &before.all), gap(&self.own, &before.own)) {
            (Some(all), Some(own)) if own.error < SAYS_MORE * all.error => own,
            (Some(gap), _) | (None, Some(gap)) => gap,
            (None, None) => return Gap { rise: 0.0, error: f32::INFINITY },
        };
        let own_ns = LOOP_DELAY_NS + (self.own_ns - before.own_ns).abs();
        let share = own_ns / self.latency_ns().min(before.latency_ns()).max(1.0);
        let rise = (gap.rise.abs() - share.ln_1p()).max(0.0).copysign(gap.rise);
        Gap { rise, ..gap }
    }

    /// The average of two places, by weight. Of `self` at most `memory` members count.
    pub fn pooled(&self, other: &Self, memory: f32) -> Self {
        let weight = self.weight.min(memory);
        let sum = weight + other.weight;
        let (a, b) = (weight / sum, other.weight / sum);
        let pool = |mine: &Spots, others: &Spots| {
            std::array::from_fn(|share| match (mine[share], others[share]) {
                (Some(mine), Some(others)) => Some(Spot {
                    mean: a * mine.mean + b * others.mean,
                    error: (a * mine.error).hypot(b * others.error),
                }),
                (mine, others) => mine.or(others),
            })
        };
        Self {
            level: a * self.level + b * other.level,
            weight: sum,
            own_ns: a * self.own_ns + b * other.own_ns,
            all: pool(&self.all, &other.all),
            own: pool(&self.own, &other.own),
        }
    }

    /// The standard error that a round of one member would have.
    pub fn noise(&self) -> f32 {
        let spot = match (self.all.iter().flatten().next(), self.own.iter().flatten().next()) {
            (Some(all), Some(own)) if own.error < SAYS_MORE * all.error => own,
            (Some(all), _) => all,
            (None, _) => return UNKNOWN_NOISE,
        };
        spot.error * self.weight.sqrt()
    }

    /// A typical latency, ns.
    pub fn latency_ns(&self) -> f32 {
        self.all.iter().flatten().next().map_or(0.0, |spot| spot.mean.exp())
    }
}

fn gap(after: &Spots, before: &Spots) -> Option<Gap> {
    after.iter().zip(before).find_map(|(after, before)| {
        let (after, before) = (after.as_ref()?, before.as_ref()?);
        Some(Gap { rise: after.mean - before.mean, error: after.error.hypot(before.error) })
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not more than the members"
)]
pub(super) fn count(share: f32, members: u32) -> usize {
    (share * members as f32).ceil() as usize
}

/// Averages over the quickest shares of `members`, of whom `values` have ended.
///
/// The average is of square roots: in a mean those would decide who are slow anyway, in a mean of
/// logarithms those who are quick anyway.
pub(super) fn spots(values: &mut [f32], members: u32) -> Spots {
    values.sort_unstable_by(f32::total_cmp);
    let all = members as f32;
    SHARES.map(|share| {
        let kept = values.get(..count(share, members))?;
        let slowest = *kept.last()?;
        let number = kept.len() as f32;
        let sum: f32 = kept.iter().sum();
        let mean = sum / number;
        // The error of a trimmed mean comes from the winsorized variance (Tukey and McLaughlin
        // 1963): as if all who are slower had taken as long as the slowest of those kept.
        let centre = (sum + (all - number) * slowest) / all;
        let squares: f32 = kept.iter().map(|value| (value - centre).powi(2)).sum();
        let squares = squares + (all - number) * (slowest - centre).powi(2);
        let deviation = (squares / (all - 1.0).max(1.0)).sqrt();
        let error = 2.0 * deviation / (share * all.sqrt() * mean);
        let unsure = if all < HANDFUL { UNSURE } else { 0.0 };
        let error = error.hypot(SHARPEST) + unsure;
        Some(Spot { mean: 2.0 * mean.ln(), error })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f32 = 1e6;

    /// Of so many members that all took as long.
    fn of(members: u32, latency_ns: f32) -> Place {
        let mut all = vec![latency_ns.sqrt(); members as usize];
        let all = spots(&mut all, members);
        Place { level: 10.0, weight: members as f32, own_ns: 0.0, all, own: [None; 3] }
    }

    fn spot(mean: f32, error: f32) -> Spots {
        [Some(Spot { mean, error }); 3]
    }

    #[test]
    fn nothing_is_known_to_better_than_a_percent_and_hardly_anything_from_three() {
        let error = |members| of(members, MS).all[0].expect("all have come back").error;
        assert!((error(3) - 0.51).abs() < 1e-4);
        assert!((error(4) - 0.01).abs() < 1e-4);
    }

    #[test]
    fn two_milliseconds_more_are_no_rise() {
        let rise = |after, before| of(10, after * MS).since(&of(10, before * MS)).rise;
        assert!(rise(11.9, 10.0).abs() < 1e-4);
        assert!(rise(10.0, 11.9).abs() < 1e-4);
        assert!((rise(12.4, 10.0) - (1.24_f32 / 1.2).ln()).abs() < 1e-4);
    }

    #[test]
    fn hosts_are_compared_with_themselves_if_that_says_much_more() {
        let place =
            |mean, error| Place { own: spot(mean, error), all: spot(17.0, 0.1), ..of(10, MS) };
        let rise = |error: f32| place(3.0, error).since(&place(1.0, error)).rise;
        assert!(rise(0.055) > 1.0);
        assert!(rise(0.065) < 1e-4);
    }

    #[test]
    fn items_are_taken_to_differ_by_a_factor_of_e_as_long_as_nothing_is_known() {
        let unknown = Place { all: [None; 3], ..of(10, MS) };
        assert!((unknown.noise() - 1.0).abs() < 1e-4);
    }
}
