/** How long things were: a histogram with bins of equal ratio, as FORMAT.md has it under "Sums". */

/** Bins in each doubling of the length. */
export const BINS_PER_OCTAVE = 8;
/** More than a day in bins that begin at a microsecond. */
export const BINS = 38 * BINS_PER_OCTAVE;

/** Counts and total lengths by bin. Bin 0 takes all that is shorter than a microsecond. */
export interface Histogram {
  count: Float64Array;
  /** In units. */
  total: Float64Array;
}

/** A histogram of nothing. */
export function emptyHistogram(): Histogram {
  return { count: new Float64Array(BINS), total: new Float64Array(BINS) };
}

/** The bin of a length in µs. */
export function binOf(us: number): number {
  return us < 1 ? 0 : Math.min(Math.floor(Math.log2(us) * BINS_PER_OCTAVE), BINS - 1);
}

/** Where a bin begins, in µs. */
export function binStart(bin: number): number {
  return 2 ** (bin / BINS_PER_OCTAVE);
}

/** Counts one more of `length` units. */
export function count(histogram: Histogram, length: number, usPerUnit: number): void {
  const bin = binOf(length * usPerUnit);
  histogram.count[bin] = (histogram.count[bin] as number) + 1;
  histogram.total[bin] = (histogram.total[bin] as number) + length;
}

/** The smallest of sorted values that a part `q` (0 to 1) of them do not exceed; 0 if there are none. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  return sorted[Math.max(Math.ceil(q * sorted.length) - 1, 0)] ?? 0;
}
