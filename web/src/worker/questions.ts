/** What the page asks of its worker, and what that answers. Times are in units. */

import type { Holds, Loose } from "../format/holds";
import type { Level } from "../format/level";
import type { ProcessSleeps } from "../format/sleeps";
import type { Lanes, Summary } from "../format/summary";
import type { Explanation } from "../model/explanation";
import type { Blamed, Flame } from "../model/flame";
import type { Numbers } from "../model/numbers";
import type { FullReport } from "../model/report";
import type { Found } from "../model/search";

/** A question by its name, and the type of its answer. */
export interface Questions {
  /** The whole report. */
  report: { ask: object; answer: FullReport };
  /** Who the threads at a GIL are. */
  lanes: { ask: { gil: number }; answer: Lanes };
  /** One level of detail. */
  level: { ask: { gil: number; level: number }; answer: Level };
  /** The exact holds of one chunk. */
  chunk: { ask: { gil: number; chunk: number }; answer: Holds };
  /** The waits that no hold ended. */
  loose: { ask: { gil: number }; answer: Loose };
  /** What the threads of a process waited at locks. */
  sleeps: { ask: { process: number }; answer: ProcessSleeps };
  /** All numbers of a range. */
  numbers: { ask: { gil: number; from: number; to: number }; answer: Numbers };
  /** What held the GIL while somebody waited. */
  flame: {
    ask: { gil: number; blamed: Pick<Blamed, "range" | "waited" | "longWaited"> };
    answer: Flame;
  };
  /** The longest thing that a lane did in a range. */
  explain: {
    ask: { gil: number; lane: number; from: number; to: number };
    answer: Explanation | null;
  };
  /** The next thing that a lane did after a moment (`step` 1), or the last before it (-1). */
  neighbour: {
    ask: { gil: number; lane: number; at: number; step: 1 | -1 };
    answer: Explanation | null;
  };
  /** Threads and lines of code. */
  search: { ask: { text: string }; answer: Found[] };
}

/** A question's name. */
export type Name = keyof Questions;

/** What is sent to the worker. */
export type ToWorker =
  | { what: "summary"; summary: Summary }
  | { what: "block"; block: number; text: string }
  | { what: "ask"; id: number; name: Name; ask: unknown }
  | { what: "cancel"; id: number }
  | { what: "pause"; isPaused: boolean };

/** What the worker sends. */
export type FromWorker = { id: number; answer: unknown } | { id: number; error: string };
