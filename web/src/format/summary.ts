/** What the page begins with: see "Summary" in FORMAT.md. Times are in units unless a name says more. */

import type { Advised } from "../model/advice";
import type { FullReport, Report } from "../model/report";

/** A block of JSON. */
export interface BlockRef {
  block: number;
}

/** A block that holds a table: its columns, each with its bytes a value. */
export interface TableRef extends BlockRef {
  rows: number;
  columns: [string, number][];
}

/** A process, in short. */
export interface ProcessSummary {
  pid: number;
  name: string;
  python: string;
  not_recorded: string | null;
  free_threaded: FullReport["processes"][number]["free_threaded"];
  held_s: number;
  waited_s: number;
  threads: number;
  /** What its threads waited at locks, sleep by sleep. */
  sleeps: { parks: TableRef | null; lock_waits: TableRef | null } | null;
}

/** How busy a GIL was, in at most 512 buckets. */
export interface Busy {
  width: number;
  held: number[];
  waited: number[];
  contended: number[];
  holder: number[];
}

/** A level of detail: buckets of `width` units. */
export interface LevelRef {
  width: number;
  table: TableRef;
}

/** Up to 16,384 exact holds with their waits. */
export interface ChunkRef {
  from: number;
  to: number;
  waits_from: number;
  holds: TableRef;
  extras?: TableRef | null;
  asks?: TableRef | null;
}

/** A stretch of time whose single holds were left out, and sums over them. */
export interface MissingRef {
  from: number;
  to: number;
  blame: TableRef;
  lengths: TableRef;
}

/** A GIL with data. */
export interface GilSummary {
  process: number;
  gil: number;
  report: number | null;
  held_s: number;
  waited_s: number;
  contended_s: number;
  /** How long there were several threads, and for how long of that it was held. */
  busy_s: number;
  busy_held_s: number;
  switch_interval_ms: number | null;
  lanes: BlockRef & { rows: number };
  busy: Busy;
  levels: LevelRef[];
  chunks: ChunkRef[];
  loose: TableRef | null;
  samples: TableRef | null;
  /** How much of the time of each waiter a look stands for at most. */
  look_for?: number;
  missing: MissingRef[];
}

/** All of it. */
export interface Summary {
  format: number;
  made_by: string;
  source: string;
  unit_ns: number;
  end: number;
  offset_s: number;
  blame_after_ms: number;
  report: Report;
  full_report: BlockRef;
  processes: ProcessSummary[];
  gils: GilSummary[];
  stacks: BlockRef | null;
  /** What to do about it; null if that was left out. */
  advised?: Advised | null;
  is_whole: boolean;
  /** The part (of 1) of all events that was lost. */
  lost_share: number;
  /** From this length on every sleep at a lock is in the page. */
  sleeps_from: number;
  bounds: string[];
}

/** The threads at a GIL, in arrays of equal length. */
export interface Lanes {
  tid: (number | null)[];
  name: string[];
  main: boolean[];
  started: (number | null)[];
  ended: (number | null)[];
  row: (number | null)[];
}

/** Stacks of all GILs; frames are [function, file, line, kind, library, isUser]. */
export interface Stacks {
  strings: string[];
  frames: number[][];
  stacks: number[][];
  whys: number[];
}
