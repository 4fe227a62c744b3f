/** Tells when the view moves and when it rests: what is slow waits for that. */

import type { Store } from "./state";

/** How long the view must stay as it is, in ms. */
const AFTER = 250;

/** Whether the reader zooms or pans. */
export class Rest {
  readonly #waiting: (() => void)[] = [];
  readonly #watching: (() => void)[] = [];
  readonly #onRest: () => void;
  #timer = 0;
  #isMoving = false;
  #hasChanged = false;

  /** `onMove` is called when the view begins to move, `onRest` some time after each change. */
  constructor(store: Store, onMove: () => void, onRest: () => void) {
    this.#onRest = onRest;
    store.onChange((now, before) => {
      if (now.view !== before.view && !this.#isMoving) {
        this.#isMoving = true;
        onMove();
      }
      this.#hasChanged = true;
      window.clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => {
        this.#rests();
      }, AFTER);
    });
  }

  /** Resolves when the view rests; at once if it does. */
  rested(): Promise<void> {
    if (!this.#isMoving) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when nothing has changed for some time, and `onRest` was called; at once if so. */
  unchanged(): Promise<void> {
    if (!this.#hasChanged) return Promise.resolve();
    return new Promise((resolve) => this.#watching.push(resolve));
  }

  #rests(): void {
    this.#isMoving = false;
    this.#hasChanged = false;
    this.#onRest();
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (const resolve of this.#watching.splice(0)) resolve();
  }
}
