/**
 * Measures a range: each number as the table "How each number is computed" in FORMAT.md says.
 *
 * Holds and waits count with their piece inside the range.
 */

import { End, type Holds, type Loose } from "../format/holds";
import { blameOf } from "./blame";
import { contendedTime } from "./contended";
import { count, emptyHistogram, quantile } from "./lengths";
import { measureLongHolds } from "./long_holds";
import { emptyLanes, type Numbers, type PerLane } from "./numbers";
import { pieceIn, touches, type Range } from "./range";

/** What was before the first of the holds that are measured. */
export interface Before {
  /** By lane, how its last hold ended; {@link NEVER} if it had none. */
  how: Uint8Array;
  /** Who held last, or -1. */
  lane: number;
}

/** The lane had no hold yet. */
export const NEVER = 255;

/** All events that a range needs, and what their numbers mean. */
export interface Measured {
  holds: Holds;
  loose: Loose;
  before: Before;
  lanes: number;
  /** In units. */
  blameAfter: number;
  /** In units, or null if nobody ever waited. */
  switchInterval: number | null;
  usPerUnit: number;
}

/** Of how much of a switch interval a wait after a blocking call is late. */
const LATE = 0.8;
/** A report counts waits in classes, from the shortest to the longest of which is this factor. */
const CLASS_WIDTH = 1.02;

/** The numbers of `range`. */
export function measure(it: Measured, range: Range): Numbers {
  const { holds, loose } = it;
  const numbers: Numbers = {
    ...range,
    held: 0,
    waited: 0,
    contended: contendedTime(holds, loose, range),
    handoffs: 0,
    voluntary: 0,
    forced: 0,
    lanes: emptyLanes(it.lanes),
    blame: blameOf(holds, loose, range, it.lanes),
    holdLengths: emptyHistogram(),
    waitLengths: emptyHistogram(),
    gapLengths: emptyHistogram(),
    longHolds: [],
    longHoldsCount: 0,
    isExact: true,
  };
  measureHolds(it, range, numbers);
  measureWaits(it, range, numbers);
  for (let i = 0; i < holds.asks.at.length; i++) {
    const at = holds.asks.at[i] as number;
    if (at >= range.from && at < range.to) add(numbers.lanes.asks, holds.asks.lane[i] as number, 1);
  }
  measureLongHolds(it, range, numbers);
  return numbers;
}

function measureHolds(it: Measured, range: Range, numbers: Numbers): void {
  const { holds } = it;
  const { lanes } = numbers;
  const how = it.before.how.slice();
  const lastEnd = new Float64Array(it.lanes).fill(-Infinity);
  let holder = it.before.lane;
  for (let i = 0; i < holds.count; i++) {
    const begin = holds.begin[i] as number;
    if (begin >= range.to) break;
    const end = holds.end[i] as number;
    const lane = holds.lane[i] as number;
    if (touches(range, begin, end)) {
      const piece = pieceIn(range, begin, end);
      numbers.held += piece;
      add(lanes.held, lane, piece);
      add(lanes.holds, lane, 1);
      raise(lanes.maxHold, lane, piece);
      count(numbers.holdLengths, piece, it.usPerUnit);
    }
    if (begin >= range.from) {
      if (holder >= 0 && holder !== lane) numbers.handoffs++;
      const ended = how[lane] as number;
      if (ended === End.Voluntary || ended === End.Forced) {
        const since = Math.max(lastEnd[lane] as number, range.from);
        const gap = begin - since;
        add(lanes.gaps, lane, 1);
        add(lanes.gapSum, lane, gap);
        if (gap > (lanes.gapMax[lane] as number)) lanes.gapMaxAt[lane] = since;
        raise(lanes.gapMax, lane, gap);
        count(numbers.gapLengths, gap, it.usPerUnit);
      }
    }
    if (end >= range.from && end < range.to) {
      const ended = holds.how[i];
      if (ended === End.Voluntary) {
        numbers.voluntary++;
        add(lanes.voluntary, lane, 1);
      } else if (ended === End.Forced) {
        numbers.forced++;
        add(lanes.forced, lane, 1);
      }
    }
    how[lane] = holds.how[i] as number;
    lastEnd[lane] = end;
    holder = lane;
  }
}

function measureWaits(it: Measured, range: Range, numbers: Numbers): void {
  const { holds, loose } = it;
  const { lanes } = numbers;
  const most = holds.count + loose.lane.length;
  const waits = new Grouped(it.lanes, most);
  const late = new Grouped(it.lanes, most);
  const how = it.before.how.slice();
  const limit = it.switchInterval === null ? Infinity : lateFrom(it.switchInterval, it.usPerUnit);

  function wait(lane: number, begin: number, end: number): void {
    const piece = pieceIn(range, begin, end);
    numbers.waited += piece;
    add(lanes.waited, lane, piece);
    add(lanes.waits, lane, 1);
    raise(lanes.maxWait, lane, piece);
    count(numbers.waitLengths, piece, it.usPerUnit);
    waits.add(lane, piece);
  }
  for (let i = 0; i < holds.count; i++) {
    const lane = holds.lane[i] as number;
    const begin = holds.begin[i] as number;
    const waitBegin = holds.waitBegin[i] as number;
    const counts = holds.waited[i] === 1 && touches(range, waitBegin, begin);
    if (counts) wait(lane, waitBegin, begin);
    if (begin >= range.from && begin < range.to && how[lane] === End.Voluntary) {
      add(lanes.calls, lane, 1);
      const piece = counts ? pieceIn(range, waitBegin, begin) : 0;
      add(lanes.callWaited, lane, piece);
      if (piece >= limit) {
        add(lanes.late, lane, 1);
        add(lanes.lateSum, lane, piece);
        late.add(lane, piece);
      }
    }
    how[lane] = holds.how[i] as number;
  }
  for (let i = 0; i < loose.lane.length; i++) {
    const [begin, end] = [loose.begin[i] as number, loose.end[i] as number];
    if (touches(range, begin, end)) wait(loose.lane[i] as number, begin, end);
  }
  waits.eachSorted((lane, lengths) => {
    lanes.p50Wait[lane] = quantile(lengths, 0.5);
    lanes.p99Wait[lane] = quantile(lengths, 0.99);
  });
  late.eachSorted((lane, lengths) => (lanes.lateP50[lane] = quantile(lengths, 0.5)));
}

/** From how many units on a wait is late: the first class whose middle is counts, as in a report. */
function lateFrom(switchInterval: number, usPerUnit: number): number {
  const nsPerUnit = usPerUnit * 1000;
  const limit = Math.log(switchInterval * LATE * nsPerUnit) / Math.log(CLASS_WIDTH);
  return CLASS_WIDTH ** Math.ceil(limit - 0.5) / nsPerUnit;
}

/** Lengths by lane. */
class Grouped {
  readonly #lanes: Uint16Array;
  readonly #lengths: Float64Array;
  readonly #counts: Uint32Array;
  #count = 0;

  /** For at most `most` lengths. */
  constructor(lanes: number, most: number) {
    this.#lanes = new Uint16Array(most);
    this.#lengths = new Float64Array(most);
    this.#counts = new Uint32Array(lanes);
  }

  add(lane: number, length: number): void {
    this.#lanes[this.#count] = lane;
    this.#lengths[this.#count++] = length;
    add(this.#counts, lane, 1);
  }

  /** Calls `use` with each lane that has any, and its lengths, the shortest first. */
  eachSorted(use: (lane: number, lengths: Float64Array) => void): void {
    const starts = new Uint32Array(this.#counts.length);
    let at = 0;
    for (let lane = 0; lane < starts.length; lane++) {
      starts[lane] = at;
      at += this.#counts[lane] as number;
    }
    const sorted = new Float64Array(at);
    const next = starts.slice();
    for (let i = 0; i < this.#count; i++) {
      const lane = this.#lanes[i] as number;
      sorted[next[lane] as number] = this.#lengths[i] as number;
      add(next, lane, 1);
    }
    for (let lane = 0; lane < starts.length; lane++) {
      const [from, to] = [starts[lane] as number, next[lane] as number];
      if (to > from) use(lane, sorted.subarray(from, to).sort());
    }
  }
}

function add(values: Float64Array | Uint32Array, index: number, by: number): void {
  values[index] = (values[index] as number) + by;
}

function raise(values: PerLane["maxHold"], index: number, to: number): void {
  if (to > (values[index] as number)) values[index] = to;
}

/** The state before hold `count` of `holds`, from that before its first. */
export function after(before: Before, holds: Holds): Before {
  const how = before.how.slice();
  for (let i = 0; i < holds.count; i++) how[holds.lane[i] as number] = holds.how[i] as number;
  return { how, lane: holds.count ? (holds.lane[holds.count - 1] as number) : before.lane };
}
