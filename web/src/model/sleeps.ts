/** What threads waited at locks in a range: the rows of the report, counted again. */

import type { ProcessSleeps, Sleeps } from "../format/sleeps";
import type { Column } from "../format/table";
import { touches, type Range } from "./range";
import type { ParkedAt, ParkedThread, Parks, ProcessReport, Waker } from "./report";

/** How often something was, and for how long: in all and at most, in units. */
interface Sum {
  count: number;
  total: number;
  most: number;
}

/** What a row of the report counts in a range. */
interface RowSums {
  all: Sum;
  /** By waker of the row. */
  wakers: Sum[];
  /** By place of the row. */
  places: Sum[];
}

/** What `process` says of locks, of `range` alone. */
export function slept(
  process: ProcessReport,
  sleeps: ProcessSleeps,
  range: Range,
  nsPerUnit: number,
): Pick<ProcessReport, "parks" | "lock_waits"> {
  const { parks, lock_waits: locks } = process;
  return {
    ...(parks && { parks: parksIn(parks, sleeps.parks, range, nsPerUnit) }),
    ...(locks && { lock_waits: rowsIn(locks, sleeps.lockWaits, range, nsPerUnit) }),
  };
}

/** For how many seconds of those from `from` to `to` the process was recorded. */
export function lifeIn(process: ProcessReport, from: number, to: number): number {
  const started = process.started_s ?? 0;
  const ended = started + (process.duration_s ?? 0);
  return Math.max(Math.min(to, ended) - Math.max(from, started), 0);
}

function parksIn(parks: Parks, sleeps: Sleeps | null, range: Range, nsPerUnit: number): Parks {
  const waits = rowsIn(parks.waits, sleeps, range, nsPerUnit);
  return { threads: threadsOf(waits), waits, pauses: pausesIn(parks, sleeps, range, nsPerUnit) };
}

/** The rows that count anything, longest first, in idleness last, as in a report. */
function rowsIn(
  rows: ParkedAt[],
  sleeps: Sleeps | null,
  range: Range,
  nsPerUnit: number,
): ParkedAt[] {
  const sums = sumsOf(rows, sleeps, range);
  const counted = rows.map((row, index) => rowOf(row, sums[index] as RowSums, nsPerUnit));
  return counted
    .filter(({ count }) => count)
    .sort((a, b) => idleness(a) - idleness(b) || b.waited_s - a.waited_s);
}

function sumsOf(rows: ParkedAt[], sleeps: Sleeps | null, range: Range): RowSums[] {
  const sums = rows.map(({ wakers, places }) => ({
    all: nothing(),
    wakers: wakers.map(nothing),
    places: places.map(nothing),
  }));
  eachIn(sleeps, range, ({ row, waker, place }, index, begin, end) => {
    const at = (column: Column): number => column[index] as number;
    const of = sums[at(row)];
    // The page may have fewer rows than there were.
    if (!of) return;
    for (const sum of [of.all, of.wakers[at(waker) - 1], of.places[at(place) - 1]]) {
      if (sum) add(sum, end - begin);
    }
  });
  return sums;
}

function rowOf(row: ParkedAt, sums: RowSums, nsPerUnit: number): ParkedAt {
  const seconds = (units: number): number => (units * nsPerUnit) / 1e9;
  const counted = <T>(those: T[], by: Sum[]): (T & Pick<Waker, "count" | "waited_s">)[] =>
    those
      .map((it, index) => {
        const { count, total } = by[index] as Sum;
        return { ...it, count, waited_s: seconds(total) };
      })
      .filter(({ count }) => count)
      .sort((a, b) => b.waited_s - a.waited_s);
  return {
    ...row,
    count: sums.all.count,
    waited_s: seconds(sums.all.total),
    max_ms: seconds(sums.all.most) * 1e3,
    wakers: counted(row.wakers, sums.wakers),
    places: counted(row.places, sums.places),
  };
}

/** How likely it is that a thread that waits so has nothing to do. */
function idleness({ cause, together, contended }: ParkedAt): number {
  if (cause === "event") return 2;
  if (cause === "lock") return together ? 0 : 1;
  return cause === "lock off the GIL" && !contended ? 1 : 0;
}

/** What each thread waited, who waited longest for others first. */
function threadsOf(waits: ParkedAt[]): ParkedThread[] {
  const threads = new Map<number, ParkedThread>();
  for (const { tid, name, cause, count, waited_s: waited } of waits) {
    const thread = threads.get(tid) ?? { tid, name, causes: [] };
    threads.set(tid, thread);
    const known = thread.causes.find((it) => it.cause === cause);
    if (known) {
      known.waited_s += waited;
      known.parks.count += count;
    } else {
      thread.causes.push({ cause, waited_s: waited, parks: { count } });
    }
  }
  return [...threads.values()].sort((a, b) => forOthers(b) - forOthers(a));
}

function forOthers({ causes }: ParkedThread): number {
  const those = causes.filter(({ cause }) => cause !== "event");
  return those.reduce((sum, { waited_s: waited }) => sum + waited, 0);
}

/** Pauses of the world: sleeps of threads that overlap are one. */
function pausesIn(
  { waits }: Parks,
  sleeps: Sleeps | null,
  range: Range,
  nsPerUnit: number,
): Parks["pauses"] {
  const all = nothing();
  let collections = 0;
  let pause = { from: 0, to: -1, isCollection: false };
  const end = (): void => {
    if (pause.to < 0) return;
    add(all, pause.to - pause.from);
    collections += Number(pause.isCollection);
  };
  // They come in the order in which they began.
  eachIn(sleeps, range, ({ row, collection }, index, from, to) => {
    if (waits[row[index] as number]?.cause !== "pause") return;
    const isCollection = collection[index] === 1;
    if (from < pause.to) {
      pause.to = Math.max(pause.to, to);
      pause.isCollection ||= isCollection;
    } else {
      end();
      pause = { from, to, isCollection };
    }
  });
  end();
  const ms = (units: number): number => (units * nsPerUnit) / 1e6;
  return { count: all.count, stopped_s: ms(all.total) / 1e3, max_ms: ms(all.most), collections };
}

/** Calls `use` with the number of each sleep of which a piece is in `range`, and that piece. */
function eachIn(
  sleeps: Sleeps | null,
  range: Range,
  use: (sleeps: Sleeps, index: number, begin: number, end: number) => void,
): void {
  if (!sleeps) return;
  for (let i = 0; i < sleeps.begin.length; i++) {
    const [begin, end] = [sleeps.begin[i] as number, sleeps.end[i] as number];
    if (begin >= range.to) return;
    if (touches(range, begin, end))
      use(sleeps, i, Math.max(begin, range.from), Math.min(end, range.to));
  }
}

function nothing(): Sum {
  return { count: 0, total: 0, most: 0 };
}

function add(sum: Sum, piece: number): void {
  sum.count++;
  sum.total += piece;
  sum.most = Math.max(sum.most, piece);
}
