/** What one hold or one wait was about. Times are in units. */

import type { Frame } from "./samples";

/** Who held during a wait, or waited during a hold. */
export interface Party {
  /** -1 is nobody. */
  lane: number;
  time: number;
  /** Where its longest piece begins and ends. */
  from: number;
  to: number;
}

/** One hold or one wait. */
export interface Explanation {
  kind: "hold" | "wait";
  lane: number;
  begin: number;
  end: number;
  /** Of a hold: how it ended, one of `End`. Of a wait: null. */
  how: number | null;
  /** Of a wait: whether the thread got the GIL then. */
  isAnswered: boolean;
  /** Of a hold, as far as it is known. */
  cpu: number | null;
  notRun: number | null;
  /** Who held meanwhile, or who waited; the longest first. */
  parties: Party[];
  /** Drop requests in it: by the waiter itself, or to the holder. */
  asks: number;
  firstAsk: number | null;
  /** The holder's stack: of the hold, or of the longest hold in the wait. */
  stack: Frame[];
  /** Why there is no stack, in a clause about "it", the hold; "" if that is not known. */
  why: string;
  samples: number;
}
