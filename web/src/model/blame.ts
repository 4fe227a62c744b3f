/** Blame: each piece of a wait is charged to who held meanwhile. */

import type { Holds, Loose } from "../format/holds";
import type { Blamed } from "./numbers";
import { lowerBound, type Range } from "./range";

/** The culprit of time in which nobody held. */
export const NOBODY = -1;

/** Pairs of lanes below this number have a cell of their own, others are in a map. */
const DENSE_LANES = 1024;

/** For how long each lane waited for each other in the range, the longest first. */
export function blameOf(holds: Holds, loose: Loose, range: Range, lanes: number): Blamed[] {
  const charges = new Charges(lanes);
  const inRange = lowerBound(holds.begin, range.to, holds.count);
  for (let i = 0; i < holds.count; i++) {
    if (!holds.waited[i]) continue;
    const begin = Math.max(holds.waitBegin[i] as number, range.from);
    const end = Math.min(holds.begin[i] as number, range.to);
    charge(charges, holds, holds.lane[i] as number, begin, end, Math.min(i, inRange) - 1);
  }
  for (let i = 0; i < loose.lane.length; i++) {
    const begin = Math.max(loose.begin[i] as number, range.from);
    const end = Math.min(loose.end[i] as number, range.to);
    const last = end > begin ? lowerBound(holds.begin, end, holds.count) - 1 : -1;
    charge(charges, holds, loose.lane[i] as number, begin, end, last);
  }
  return charges.rows();
}

/** Who held between two moments, from hold `last` backwards; calls `use` with each and its piece. */
export function eachHolder(
  holds: Holds,
  begin: number,
  end: number,
  last: number,
  use: (hold: number, piece: number) => void,
): void {
  for (let i = last; i >= 0; i--) {
    const heldUntil = holds.end[i] as number;
    if (heldUntil <= begin) break;
    const piece = Math.min(heldUntil, end) - Math.max(holds.begin[i] as number, begin);
    if (piece > 0) use(i, piece);
  }
}

function charge(
  charges: Charges,
  holds: Holds,
  victim: number,
  begin: number,
  end: number,
  last: number,
): void {
  if (end <= begin) return;
  let rest = end - begin;
  for (let i = last; i >= 0; i--) {
    const heldUntil = holds.end[i] as number;
    if (heldUntil <= begin) break;
    const from = holds.begin[i] as number;
    const piece = (heldUntil < end ? heldUntil : end) - (from > begin ? from : begin);
    if (piece > 0) {
      charges.add(victim, holds.lane[i] as number, piece);
      rest -= piece;
    }
  }
  if (rest > 0) charges.add(victim, NOBODY, rest);
}

/** Sums by pair. */
class Charges {
  readonly #lanes: number;
  readonly #dense: Float64Array | null;
  readonly #sparse = new Map<number, number>();

  constructor(lanes: number) {
    this.#lanes = lanes + 1;
    this.#dense = lanes < DENSE_LANES ? new Float64Array(this.#lanes * this.#lanes) : null;
  }

  add(victim: number, culprit: number, by: number): void {
    const key = victim * this.#lanes + culprit + 1;
    if (this.#dense) this.#dense[key] = (this.#dense[key] as number) + by;
    else this.#sparse.set(key, (this.#sparse.get(key) ?? 0) + by);
  }

  rows(): Blamed[] {
    const rows: Blamed[] = [];
    const push = (waited: number, key: number): void => {
      if (waited <= 0) return;
      const culprit = (key % this.#lanes) - 1;
      rows.push({ victim: Math.floor(key / this.#lanes), culprit, waited });
    };
    this.#dense?.forEach(push);
    this.#sparse.forEach(push);
    return rows.sort((one, other) => other.waited - one.waited);
  }
}
