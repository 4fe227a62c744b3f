/** Contended time: a hold and at least one wait go on. */

import type { Holds, Loose } from "../format/holds";
import type { Range } from "./range";

/** How long, in the range, a thread held while another waited. A holder never waits itself. */
export function contendedTime(holds: Holds, loose: Loose, range: Range): number {
  const waits = unionOfWaits(holds, loose, range);
  let sum = 0;
  // Both run backwards through disjoint stretches.
  let next = 0;
  for (let i = holds.count - 1; i >= 0 && next < waits.length; i--) {
    const begin = Math.max(holds.begin[i] as number, range.from);
    const end = Math.min(holds.end[i] as number, range.to);
    if (end <= begin) continue;
    while (next < waits.length && (waits[next] as number) >= end) next += 2;
    for (let at = next; at < waits.length && (waits[at + 1] as number) > begin; at += 2) {
      sum += Math.min(waits[at + 1] as number, end) - Math.max(waits[at] as number, begin);
      if ((waits[at] as number) >= begin) next = at + 2;
    }
  }
  return sum;
}

/** Stretches in which somebody waited, disjoint, the latest first: begin, end, begin, end ... */
function unionOfWaits(holds: Holds, loose: Loose, range: Range): number[] {
  const stretches: number[] = [];
  // Waits of holds come in the order of their ends already.
  const others = Array.from(loose.end.keys()).sort(
    (one, other) => (loose.end[other] as number) - (loose.end[one] as number),
  );
  let begin = Infinity;
  let end = Infinity;
  function add(from: number, to: number): void {
    const [low, high] = [Math.max(from, range.from), Math.min(to, range.to)];
    if (high <= low) return;
    if (high >= begin) {
      begin = Math.min(begin, low);
      return;
    }
    if (begin < Infinity) stretches.push(begin, end);
    [begin, end] = [low, high];
  }
  let other = 0;
  const loosened = (least: number): void => {
    for (; other < others.length; other++) {
      const index = others[other] as number;
      if ((loose.end[index] as number) < least) return;
      add(loose.begin[index] as number, loose.end[index] as number);
    }
  };
  for (let i = holds.count - 1; i >= 0; i--) {
    if (!holds.waited[i]) continue;
    loosened(holds.begin[i] as number);
    add(holds.waitBegin[i] as number, holds.begin[i] as number);
  }
  loosened(-Infinity);
  if (begin < Infinity) stretches.push(begin, end);
  return stretches;
}
