/** How many waited when: answers what all threads together waited between two moments. */

import { lowerBound } from "./range";

/** The sum, over all waits, of what each waited between two moments. */
export class Waiting {
  readonly #begins: Moments;
  readonly #ends: Moments;

  /** Waits from `begins[i]` to `ends[i]`, in any order. */
  constructor(begins: Float64Array, ends: Float64Array) {
    this.#begins = new Moments(begins);
    this.#ends = new Moments(ends);
  }

  /** What was waited from `from` to `to`. */
  between(from: number, to: number): number {
    return to > from ? this.#until(to) - this.#until(from) : 0;
  }

  #until(at: number): number {
    return this.#begins.passedSince(at) - this.#ends.passedSince(at);
  }
}

/** Moments, sorted, with their sums. */
class Moments {
  readonly #at: Float64Array;
  readonly #sums: Float64Array;

  constructor(at: Float64Array) {
    this.#at = at.slice().sort();
    this.#sums = new Float64Array(at.length + 1);
    // Counted from the first, so that sums stay below 2^53.
    for (let i = 0; i < at.length; i++) {
      this.#sums[i + 1] = (this.#sums[i] as number) + (this.#at[i] as number) - this.#origin;
    }
  }

  get #origin(): number {
    return this.#at[0] ?? 0;
  }

  /** The sum of the times that have passed since each of them, at `at`. */
  passedSince(at: number): number {
    const count = lowerBound(this.#at, at);
    return (at - this.#origin) * count - (this.#sums[count] as number);
  }
}
