/** Tells when the view moves and when it rests: what is slow waits for that. */

import type { Store } from "./state";

/** How long the view must stay as it is, in ms. */
const AFTER = 250;

/** Whether the reader zooms or pans. */
export class Rest {
  readonly #waiting: (() => void)[] = [];
  readonly #onRest: () => void;
  /** Runs from a change on; null once nothing has changed for some time. */
  #timer: number | null = null;
  #isMoving = false;

  /** `onMove` is called when the view begins to move, `onRest` some time after each change. */
  constructor(store: Store, onMove: () => void, onRest: () => void) {
    this.#onRest = onRest;
    store.onChange((now, before) => {
      if (now.view !== before.view && !this.#isMoving) {
        this.#isMoving = true;
        onMove();
      }
      if (this.#timer !== null) window.clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => {
        this.#rests();
      }, AFTER);
    });
  }

  /** Resolves when the view rests; at once if it does. */
  rested(): Promise<void> {
    return this.#isMoving ? this.#rest() : Promise.resolve();
  }

  /** Resolves when nothing has changed for some time, and `onRest` was called; at once if so. */
  unchanged(): Promise<void> {
    return this.#timer === null ? Promise.resolve() : this.#rest();
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #rests(): void {
    this.#isMoving = false;
    this.#timer = null;
    this.#onRest();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
