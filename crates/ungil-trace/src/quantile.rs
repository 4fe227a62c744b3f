//! Quantiles of lengths by their nearest rank.

use sketches_ddsketch::DDSketch;

/// The shortest of the seen lengths that a part `q` (of 1) of all of them do not exceed, to within
/// the error of the sketch; `None` if none was seen.
///
/// This is the nearest rank, as in most textbooks: of ten waits the longest is the 99th percentile.
/// The sketch's own rank is rounded down, and would name the second longest.
pub fn quantile(sketch: &DDSketch, q: f64) -> Option<f64> {
    let count = sketch.count();
    let last = count.saturating_sub(1).max(1) as f64;
    let rank = (q * count as f64).ceil() - 1.0;
    // The middle of what is rounded down to that rank.
    let estimate = sketch.quantile(((rank + 0.5) / last).clamp(0.0, 1.0)).ok().flatten()?;
    // The middle of a bin may lie outside of what was seen.
    Some(estimate.clamp(sketch.min()?, sketch.max()?))
}
