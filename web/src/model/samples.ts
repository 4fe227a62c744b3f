/** Stacks that were taken of holders while somebody waited ("Stacks" in FORMAT.md). */

import type { Stacks } from "../format/summary";
import type { Table } from "../format/table";

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
