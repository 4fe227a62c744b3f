/** A stretch of time, in units: what begins at `from` belongs to it, what begins at `to` does not. */
export interface Range {
  from: number;
  to: number;
}

/** How much of `begin` to `end` lies in the range. */
export function pieceIn(range: Range, begin: number, end: number): number {
  return Math.max(Math.min(end, range.to) - Math.max(begin, range.from), 0);
}

/**
 * Whether something from `begin` to `end` counts in the range: a piece of it lies inside, or it has
 * no length and is inside.
 */
export function touches(range: Range, begin: number, end: number): boolean {
  return begin === end
    ? begin >= range.from && begin < range.to
    : begin < range.to && end > range.from;
}

/** The first index from which on `values`, which rise, are at least `least`. */
export function lowerBound(values: ArrayLike<number>, least: number, high = values.length): number {
  let low = 0;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
