/** What is known of a GIL for a range of time: the result of measuring. Times are in units. */

import type { Histogram } from "./lengths";
import type { Sampled } from "./samples";

/** Names of the numbers that each lane has. */
export const PER_LANE = [
  "held",
  "waited",
  "holds",
  "waits",
  "maxHold",
  "maxWait",
  "p50Wait",
  "p99Wait",
  "gaps",
  "gapSum",
  "gapMax",
  "gapMaxAt",
  "voluntary",
  "forced",
  "asks",
  "calls",
  "late",
  "lateSum",
  "lateP50",
  "callWaited",
  "unansweredHolds",
  "unansweredSum",
  "unansweredMax",
  "unansweredWaited",
  "keptHolds",
  "keptSum",
  "keptMax",
  "keptWaited",
  "notRun",
  "notRunMax",
  "notRunWaited",
  "longWaited",
] as const;

/** The numbers of all lanes, by name; index is the lane. */
export type PerLane = Record<(typeof PER_LANE)[number], Float64Array>;

/** For how long `victim` waited while `culprit` held; culprit -1 is nobody. */
export interface Blamed {
  victim: number;
  culprit: number;
  waited: number;
}

/** A hold of at least the blame time. */
export interface LongPiece {
  lane: number;
  begin: number;
  end: number;
  waited: number;
  notRun: number;
  /** What it did, if that was sampled. */
  did?: Sampled;
}

/** All numbers of one GIL in a range. */
export interface Numbers {
  from: number;
  to: number;
  held: number;
  waited: number;
  contended: number;
  handoffs: number;
  voluntary: number;
  forced: number;
  lanes: PerLane;
  /** Longest first. */
  blame: Blamed[];
  holdLengths: Histogram;
  waitLengths: Histogram;
  gapLengths: Histogram;
  /** Those that made others wait longest, at most 100. */
  longHolds: LongPiece[];
  longHoldsCount: number;
  /** What of these could not be known exactly, because events were left out of the page. */
  isExact: boolean;
}

/** By lane, what others waited for it. */
export function culpritsOf(numbers: Numbers, lanes: number): Float64Array {
  const waited = new Float64Array(lanes);
  for (const row of numbers.blame) {
    if (row.culprit >= 0) waited[row.culprit] = (waited[row.culprit] as number) + row.waited;
  }
  return waited;
}

/** Zeros for `count` lanes. */
export function emptyLanes(count: number): PerLane {
  const made = {} as PerLane;
  for (const name of PER_LANE) made[name] = new Float64Array(count);
  return made;
}
