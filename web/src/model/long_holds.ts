/** Holds of at least the blame time: unanswered drop requests, and time in which nobody ran. */

import type { Holds, Loose } from "../format/holds";
import type { Measured } from "./measure";
import type { LongPiece, Numbers } from "./numbers";
import { lowerBound, type Range } from "./range";
import { Waiting } from "./waiting";

/** How many are listed. */
const LISTED = 100;

/** Adds what the long holds of the range tell to `numbers`. */
export function measureLongHolds(it: Measured, range: Range, numbers: Numbers): void {
  const { holds } = it;
  const { lanes } = numbers;
  const extraOf = new Map<number, number>();
  holds.extras.hold.forEach((hold, extra) => extraOf.set(hold, extra));
  let waiting: Waiting | undefined;
  const waitedBetween = (from: number, to: number): number =>
    (waiting ??= waitsOf(holds, it.loose)).between(from, to);
  const found: LongPiece[] = [];
  const end = lowerBound(holds.begin, range.to, holds.count);
  for (let i = 0; i < end; i++) {
    const from = Math.max(holds.begin[i] as number, range.from);
    const to = Math.min(holds.end[i] as number, range.to);
    if (to <= from) continue;
    const isLong = to - from >= it.blameAfter;
    const extra = extraOf.get(i);
    const lane = holds.lane[i] as number;
    const whole = (holds.end[i] as number) - (holds.begin[i] as number);
    if (whole < it.blameAfter && extra === undefined) continue;
    const part = whole > 0 ? (to - from) / whole : 0;
    const waited = waitedBetween(from, to);
    if (whole >= it.blameAfter) increase(lanes.longWaited, lane, waited);
    const notRun = extra === undefined ? 0 : (holds.extras.notRun[extra] as number) * part;
    if (notRun > 0) {
      increase(lanes.notRun, lane, notRun);
      lanes.notRunMax[lane] = Math.max(lanes.notRunMax[lane] as number, notRun);
      increase(lanes.notRunWaited, lane, (waited * notRun) / (to - from));
    }
    if (!isLong) continue;
    found.push({ lane, begin: from, end: to, waited, notRun });
    // One that was asked for before the range is unanswered all the time.
    const first = firstAsk(holds, lane, holds.begin[i] as number, to);
    if (first === null) continue;
    const asked = Math.max(first, from);
    if (to - asked < it.blameAfter) continue;
    const unanswered = to - asked;
    const waitedThen = waitedBetween(asked, to);
    add(numbers, "unanswered", lane, unanswered, waitedThen);
    const most = extra === undefined ? 0 : (holds.extras.notRunMost[extra] as number) * part;
    const kept = Math.max(unanswered - most, 0);
    if (kept >= it.blameAfter) add(numbers, "kept", lane, kept, (waitedThen * kept) / unanswered);
  }
  numbers.longHoldsCount = found.length;
  found.sort((one, other) => rank(other) - rank(one) || other.waited - one.waited);
  numbers.longHolds = found.slice(0, LISTED);
}

/** Those that somebody waited for come first, then the longest. */
function rank(hold: LongPiece): number {
  return (hold.waited > 0 ? 2 ** 53 : 0) + hold.end - hold.begin;
}

function add(
  numbers: Numbers,
  what: "unanswered" | "kept",
  lane: number,
  length: number,
  waited: number,
): void {
  const { lanes } = numbers;
  increase(lanes[`${what}Holds`], lane, 1);
  increase(lanes[`${what}Sum`], lane, length);
  increase(lanes[`${what}Waited`], lane, waited);
  lanes[`${what}Max`][lane] = Math.max(lanes[`${what}Max`][lane] as number, length);
}

function increase(values: Float64Array, lane: number, by: number): void {
  values[lane] = (values[lane] as number) + by;
}

/** When another lane first asked for the GIL between two moments, or null. */
function firstAsk(holds: Holds, lane: number, from: number, to: number): number | null {
  const { at, lane: asker } = holds.asks;
  for (let i = lowerBound(at, from); i < at.length && (at[i] as number) < to; i++) {
    if (asker[i] !== lane) return at[i] as number;
  }
  return null;
}

/** All waits, summed over time. */
function waitsOf(holds: Holds, loose: Loose): Waiting {
  const begins = new Float64Array(holds.count + loose.lane.length);
  const ends = new Float64Array(begins.length);
  let count = 0;
  for (let i = 0; i < holds.count; i++) {
    if (!holds.waited[i]) continue;
    begins[count] = holds.waitBegin[i] as number;
    ends[count++] = holds.begin[i] as number;
  }
  begins.set(loose.begin, count);
  ends.set(loose.end, count);
  count += loose.lane.length;
  return new Waiting(begins.subarray(0, count), ends.subarray(0, count));
}
