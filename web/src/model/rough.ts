/** Numbers of times whose single holds the page had no room for: from levels and sums. */

import type { Level } from "../format/level";
import type { GilSummary, MissingRef, TableRef } from "../format/summary";
import type { Table } from "../format/table";
import { binStart, BINS_PER_OCTAVE } from "./lengths";
import type { Blamed, Numbers, PerLane } from "./numbers";
import type { Range } from "./range";

/** Where levels and tables come from. */
export interface RoughSource {
  readonly gil: GilSummary;
  level(index: number): Promise<Level>;
  table(ref: TableRef | null | undefined): Promise<Table | null>;
}

/** Numbers that single holds tell, and nothing else. */
const UNKNOWN = [
  "maxHold",
  "maxWait",
  "p50Wait",
  "p99Wait",
  "gapSum",
  "gapMax",
  "voluntary",
  "calls",
  "late",
  "lateSum",
  "lateP50",
  "callWaited",
] as const;

/** The stretches of the range whose holds were left out of the page. */
export function missingIn(gil: GilSummary, range: Range): MissingRef[] {
  return gil.missing.filter((it) => it.from < range.to && it.to > range.from);
}

/**
 * `numbers`, which single holds told, completed by what is known of those that are missing. Times
 * and counts are rounded out to buckets, blame and lengths to missing stretches. NaN is not known.
 */
export async function withMissing(
  numbers: Numbers,
  source: RoughSource,
  range: Range,
  usPerUnit: number,
): Promise<Numbers> {
  const { gil } = source;
  const { lanes } = numbers;
  addLevel(lanes, await source.level(gil.levels.length - 1), range);
  for (const name of UNKNOWN) lanes[name].fill(NaN);
  const blame = new Map(numbers.blame.map((row) => [`${row.victim} ${row.culprit}`, row]));
  for (const missing of missingIn(gil, range)) {
    addBlame(blame, await source.table(missing.blame));
    addLengths(numbers, await source.table(missing.lengths), usPerUnit);
  }
  const sum = (values: Float64Array): number => values.reduce((all, value) => all + value, 0);
  return {
    ...numbers,
    held: sum(lanes.held),
    waited: sum(lanes.waited),
    contended: contendedOf(gil, range),
    handoffs: NaN,
    voluntary: NaN,
    forced: sum(lanes.forced),
    blame: [...blame.values()].sort((one, other) => other.waited - one.waited),
    longHoldsCount: NaN,
    isExact: false,
  };
}

/** Puts what `level` tells of the range in the place of the numbers that it has. */
function addLevel(lanes: PerLane, level: Level, range: Range): void {
  const first = Math.floor(range.from / level.width);
  const last = Math.ceil(range.to / level.width);
  for (const name of ["held", "waited", "notRun", "holds", "waits", "forced", "asks"] as const) {
    lanes[name].fill(0);
    const values = level[name];
    const isTime = name === "held" || name === "waited" || name === "notRun";
    for (let lane = 0; lane + 1 < level.laneStart.length; lane++) {
      const end = level.laneStart[lane + 1] as number;
      for (let row = level.laneStart[lane] as number; row < end; row++) {
        const begin = level.bucket[row] as number;
        const until = begin + (level.run[row] as number);
        const buckets = Math.min(until, last) - Math.max(begin, first);
        if (buckets <= 0) continue;
        const times = isTime ? buckets : 1;
        lanes[name][lane] = (lanes[name][lane] as number) + (values[row] as number) * times;
      }
    }
  }
}

/** Contended time, in proportion of the buckets of `busy`. */
function contendedOf(gil: GilSummary, range: Range): number {
  const { width, contended } = gil.busy;
  return contended.reduce((sum, value, bucket) => {
    const inside = Math.min((bucket + 1) * width, range.to) - Math.max(bucket * width, range.from);
    return inside > 0 ? sum + (value * inside) / width : sum;
  }, 0);
}

function addBlame(blame: Map<string, Blamed>, table: Table | null): void {
  for (let row = 0; table && row < table.rows; row++) {
    const victim = table.column("victim")[row] as number;
    const culprit = (table.column("culprit")[row] as number) - 1;
    const key = `${victim} ${culprit}`;
    const waited = (table.column("waited")[row] as number) + (blame.get(key)?.waited ?? 0);
    blame.set(key, { victim, culprit, waited });
  }
}

function addLengths(numbers: Numbers, table: Table | null, usPerUnit: number): void {
  for (let row = 0; table && row < table.rows; row++) {
    const isWait = table.column("what")[row] === 1;
    const { count, total } = isWait ? numbers.waitLengths : numbers.holdLengths;
    const bin = Math.min(table.column("bin")[row] as number, count.length - 1);
    const more = table.column("count")[row] as number;
    count[bin] = (count[bin] as number) + more;
    // Each is taken to be as long as the middle of its bin.
    const middle = (binStart(bin) * 2 ** (0.5 / BINS_PER_OCTAVE)) / usPerUnit;
    total[bin] = (total[bin] as number) + more * middle;
  }
}
