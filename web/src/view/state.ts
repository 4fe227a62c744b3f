/** What the reader looks at: every part of the page shows this, and the link keeps it. */

import type { Explanation } from "../model/explanation";
import type { Range } from "../model/range";

/** What the page shows. Times are in units. */
export interface State {
  /** Index in the summary's GILs. */
  gil: number;
  /** What the timeline shows. */
  view: Range;
  /** What the numbers are about; null is the whole run. */
  selection: Range | null;
  /** The hold or wait that is explained. */
  picked: Explanation | null;
  /** The lane that the reader is at. */
  lane: number | null;
}

type Listener = (now: State, before: State) => void;

/** Keeps the state, and tells who listens when it changes. */
export class Store {
  #state: State;
  readonly #listeners: Listener[] = [];

  constructor(state: State) {
    this.#state = state;
  }

  /** What is shown now. */
  get now(): State {
    return this.#state;
  }

  /** Changes some of it. */
  set(change: Partial<State>): void {
    const before = this.#state;
    this.#state = { ...before, ...change };
    for (const listener of this.#listeners) listener(this.#state, before);
  }

  /** Calls `listener` after each change. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }
}
