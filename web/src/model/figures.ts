/**
 * What the page shows of a GIL, in ns: the report's own numbers of the whole run, or those measured
 * for a range. NaN is a number that is not known.
 */

import type { Lanes } from "../format/summary";
import type { Numbers } from "./numbers";
import { placeOf, type Frame, type Sampled } from "./samples";
import type { GilReport, Native, ProcessReport, ThreadRow, Who } from "./report";

/** A party to a wait: a lane, or words for those that are none. */
export type PartyName = number | "nobody" | "others" | "unknown";

/** One thread's numbers. */
export interface ThreadFigures {
  /** Null for a thread that the page has no lane of. */
  lane: number | null;
  tid: number | null;
  name: string;
  held: number;
  waited: number;
  waits: { count: number; p50: number; p99: number; max: number };
  gaps: { mean: number; max: number; maxAt: number | null };
  holds: { count: number; max: number };
  voluntary: number;
  forced: number;
}

/** A hold of at least the blame time. */
export interface LongHoldFigures {
  lane: number | null;
  name: string;
  begin: number;
  length: number;
  waited: number;
  waiters: number | null;
  notRun: number | null;
  /** What it did, innermost first, as the report has it; null if that is not known here. */
  stack: string[] | null;
  userFrame: string | null;
  native: Native | null;
  missing: string | null;
}

/** The part of a time in which there were several threads, and what of it the GIL was held. */
export interface Shared {
  span: number;
  held: number;
  /** Whether what is left out, at the start, is long enough to be told of. */
  isShorter: boolean;
}

/** That of `figures`: what page and report give shares of. */
export function shared({ span, startup, held, startupHeld }: Figures): Shared {
  return {
    span: span - startup,
    held: Math.max(held - startupHeld, 0),
    isShorter: startup >= span / 100,
  };
}

/** All numbers of a GIL. Times are in ns. */
export interface Figures {
  source: "report" | "measured" | "rough";
  /** How long the time is that they are about. */
  span: number;
  /** What of it was before a second thread came, and what was held then. */
  startup: number;
  startupHeld: number;
  held: number;
  waited: number;
  contended: number;
  handoffs: number;
  forced: number;
  /** How many threads wanted to run on average. */
  wanting: number;
  threads: ThreadFigures[];
  /** Threads that are not listed, summed. */
  others: { threads: number; held: number; waited: number } | null;
  blame: { victim: PartyName; culprit: PartyName; waited: number }[];
  longHolds: LongHoldFigures[];
  longHoldsCount: number;
}

const S = 1e9;
const MS = 1e6;
const US = 1e3;

/** The report's own numbers. `offset` is where the page begins, in ns of the trace. */
export function figuresOfReport(
  process: ProcessReport,
  gil: GilReport,
  lanes: Lanes,
  pageSpan: number,
  offset: number,
): Figures {
  const laneOfRow = new Map<number, number>();
  lanes.row.forEach((row, lane) => {
    if (row !== null) laneOfRow.set(row, lane);
  });
  const laneOfTid = new Map<number, number>();
  gil.threads.forEach((thread, row) => {
    const lane = laneOfRow.get(row);
    if (lane !== undefined && !laneOfTid.has(thread.tid)) laneOfTid.set(thread.tid, lane);
  });
  const party = (who: Who): PartyName =>
    typeof who === "number" ? (laneOfTid.get(who) ?? "others") : (who ?? "nobody");
  const span = (process.duration_s ?? pageSpan / S) * S;
  return {
    source: "report",
    span,
    startup: (process.startup_s ?? 0) * S,
    startupHeld: (gil.startup_held_s ?? 0) * S,
    held: gil.held_s * S,
    waited: (sum(gil.threads, (it) => it.waited_s) + (gil.others?.waited_s ?? 0)) * S,
    contended: gil.contended_s * S,
    handoffs: gil.handoffs,
    forced: gil.forced,
    wanting: gil.wanting_mean,
    threads: gil.threads.map((thread, row) => ofRow(thread, laneOfRow.get(row) ?? null)),
    others: gil.others
      ? {
          threads: gil.others.threads,
          held: gil.others.held_s * S,
          waited: gil.others.waited_s * S,
        }
      : null,
    blame: gil.blame.map((row) => ({
      victim: party(row.victim),
      culprit: party(row.culprit),
      waited: row.waited_s * S,
    })),
    longHolds: gil.long_holds.map((hold) => ({
      lane: laneOfTid.get(hold.tid) ?? null,
      name: hold.name ?? `thread-${hold.tid}`,
      begin: hold.start_s * S - offset,
      length: hold.duration_ms * MS,
      waited: (hold.waited_s ?? 0) * S,
      waiters: hold.waiters_max ?? null,
      notRun: hold.not_run_ms == null ? null : hold.not_run_ms * MS,
      stack: hold.stack,
      userFrame: hold.user_frame ?? null,
      native: hold.native ?? null,
      missing: hold.stack_missing ?? null,
    })),
    longHoldsCount: gil.long_holds_count ?? gil.long_holds.length,
  };
}

function ofRow(thread: ThreadRow, lane: number | null): ThreadFigures {
  const { waits, gaps, holds } = thread;
  return {
    lane,
    tid: thread.tid,
    name: thread.name,
    held: thread.held_s * S,
    waited: thread.waited_s * S,
    waits: {
      count: waits.count,
      p50: waits.p50_us * US,
      p99: waits.p99_us * US,
      max: waits.max_us * US,
    },
    gaps: { mean: gaps.mean_ms * MS, max: gaps.max_ms * MS, maxAt: null },
    holds: { count: holds.count, max: holds.max_us * US },
    voluntary: thread.voluntary,
    forced: thread.forced,
  };
}

/** The numbers of a range, from units of `unit` ns. */
export function figuresOfNumbers(numbers: Numbers, lanes: Lanes, unit: number): Figures {
  const span = (numbers.to - numbers.from) * unit;
  const values = numbers.lanes;
  const of = (name: keyof typeof values, lane: number): number => values[name][lane] as number;
  const threads: ThreadFigures[] = [];
  for (let lane = 0; lane < lanes.tid.length; lane++) {
    if (!of("holds", lane) && !of("waits", lane) && !of("held", lane) && !of("waited", lane))
      continue;
    threads.push({
      lane,
      tid: lanes.tid[lane] ?? null,
      name: lanes.name[lane] ?? "",
      held: of("held", lane) * unit,
      waited: of("waited", lane) * unit,
      waits: {
        count: of("waits", lane),
        p50: of("p50Wait", lane) * unit,
        p99: of("p99Wait", lane) * unit,
        max: of("maxWait", lane) * unit,
      },
      gaps: {
        mean: (of("gapSum", lane) / Math.max(of("gaps", lane), 1)) * unit,
        max: of("gapMax", lane) * unit,
        maxAt: of("gapMaxAt", lane) * unit,
      },
      holds: { count: of("holds", lane), max: of("maxHold", lane) * unit },
      voluntary: numbers.isExact ? of("voluntary", lane) : NaN,
      forced: of("forced", lane),
    });
  }
  threads.sort((one, other) => other.held + other.waited - one.held - one.waited);
  return {
    source: numbers.isExact ? "measured" : "rough",
    span,
    startup: 0,
    startupHeld: 0,
    held: numbers.held * unit,
    waited: numbers.waited * unit,
    contended: numbers.contended * unit,
    handoffs: numbers.handoffs,
    forced: numbers.forced,
    wanting: span > 0 ? ((numbers.held + numbers.waited) * unit) / span : 0,
    threads,
    others: null,
    blame: numbers.blame.map(({ victim, culprit, waited }) => ({
      victim,
      culprit: culprit < 0 ? "nobody" : culprit,
      waited: waited * unit,
    })),
    longHolds: numbers.longHolds.map((hold) => ({
      lane: hold.lane,
      name: lanes.name[hold.lane] ?? "",
      begin: hold.begin * unit,
      length: (hold.end - hold.begin) * unit,
      waited: hold.waited * unit,
      waiters: null,
      notRun: hold.notRun > 0 ? hold.notRun * unit : null,
      ...did(hold.did),
    })),
    longHoldsCount: numbers.longHoldsCount,
  };
}

/** What a sampled hold did, as the report says it. */
function did(
  it: Sampled | undefined,
): Pick<LongHoldFigures, "stack" | "userFrame" | "native" | "missing"> {
  const none = { stack: null, userFrame: null, native: null, missing: null };
  if (!it || (!it.stack.length && !it.why)) return none;
  const line = (frame: Frame): string => `${frame.function} (${placeOf(frame)})`;
  const natives = it.stack.filter((frame) => frame.isNative);
  const python = it.stack.filter((frame) => !frame.isNative);
  const users = python.find((frame) => frame.isUser);
  const [innermost, called] = [natives[0], natives.at(-1)];
  return {
    stack: python.map(line),
    userFrame: users ? line(users) : null,
    native:
      innermost && called
        ? {
            function: called.function || null,
            library: called.library,
            innermost: innermost.function || null,
            innermost_library: innermost.library,
          }
        : null,
    missing: it.why || null,
  };
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((all, value) => all + of(value), 0);
}
