/** Stacks that were taken of holders while somebody waited ("Stacks" in FORMAT.md). */

import type { Stacks } from "../format/summary";
import type { Table } from "../format/table";
import { lowerBound } from "./range";

/** Samples of one GIL, sorted by the begin of their hold. Times are in units. */
export interface Samples {
  count: number;
  lane: ArrayLike<number>;
  begin: Float64Array;
  length: ArrayLike<number>;
  waited: ArrayLike<number>;
  at: ArrayLike<number>;
  /** Index in stacks + 1, or 0. */
  stack: ArrayLike<number>;
  /** Index in whys + 1, or 0. */
  why: ArrayLike<number>;
  /** How many threads waited, if it is a look at a regular time; else 0. */
  waiters: ArrayLike<number>;
}

/** The samples of a table. */
export function readSamples(table: Table | null): Samples {
  const column = (name: string): ArrayLike<number> => table?.column(name) ?? [];
  let at = 0;
  return {
    count: table?.rows ?? 0,
    lane: column("lane"),
    begin: Float64Array.from(column("begin"), (step) => (at += step)),
    length: column("length"),
    waited: column("waited"),
    at: column("at"),
    stack: column("stack"),
    why: column("why"),
    waiters: column("waiters"),
  };
}

/** One frame, ready to be shown. */
export interface Frame {
  function: string;
  file: string;
  line: number;
  isNative: boolean;
  /** The file of its shared library, or "". */
  library: string;
  isUser: boolean;
}

/** The frames of stack `index`, innermost first. */
export function framesOf(stacks: Stacks, index: number): Frame[] {
  const text = (string: number | undefined): string => stacks.strings[string ?? 0] ?? "";
  return (stacks.stacks[index] ?? []).map((number) => {
    const frame = stacks.frames[number] ?? [];
    return {
      function: text(frame[0]),
      file: text(frame[1]),
      line: frame[2] ?? 0,
      isNative: text(frame[3]) === "native",
      library: text(frame[4]),
      isUser: frame[5] === 1,
    };
  });
}

/** Where a frame is: `file:line`, the library of a native one. */
export function placeOf(frame: Frame): string {
  if (frame.isNative) return frame.library;
  return frame.line ? `${frame.file}:${frame.line}` : frame.file;
}

/** The index after the last sample of the same hold as sample `first`. */
export function endOfHold(samples: Samples, first: number): number {
  let last = first + 1;
  while (
    last < samples.count &&
    samples.begin[last] === samples.begin[first] &&
    samples.lane[last] === samples.lane[first]
  ) {
    last++;
  }
  return last;
}

/** What is known of stacks. */
export interface Known {
  samples: Samples;
  stacks: Stacks;
}

/** What a holder did, as most samples of a hold show it. */
export interface Sampled {
  /** Innermost first; empty if no sample has one. */
  stack: Frame[];
  /** Then, why. */
  why: string;
  samples: number;
}

/** The samples of the hold that `lane` began between two moments. */
export function sampled(
  known: Known,
  hold: { lane: number; from: number; to: number } | null | undefined,
): Sampled {
  const { samples, stacks } = known;
  const none = { stack: [], why: "", samples: 0 };
  if (!hold) return none;
  for (
    let first = lowerBound(samples.begin, hold.from, samples.count);
    first < samples.count && (samples.begin[first] as number) < Math.max(hold.to, hold.from + 1);
    first = endOfHold(samples, first)
  ) {
    if (samples.lane[first] !== hold.lane) continue;
    const counts = new Map<number, number>();
    let why = "";
    for (let i = first; i < endOfHold(samples, first); i++) {
      const stack = samples.stack[i] as number;
      if (stack) counts.set(stack, (counts.get(stack) ?? 0) + 1);
      else why = stacks.strings[stacks.whys[(samples.why[i] as number) - 1] ?? 0] ?? "";
    }
    const [most] = [...counts].sort((one, other) => other[1] - one[1]);
    if (!most) return { ...none, why };
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    return { stack: framesOf(stacks, most[0] - 1), why: "", samples: total };
  }
  return none;
}
