/** Moves of the view: each gives the range to show, kept inside the whole. */

import type { Range } from "../../model/range";

/** The least that can be shown, in ns: a microsecond is easily seen then. */
const LEAST_NS = 1000;

/** `view` moved by `share` of its length. */
export function panned(view: Range, whole: Range, share: number): Range {
  const by = (view.to - view.from) * share;
  return kept({ from: view.from + by, to: view.to + by }, whole);
}

/** `view` as 1/`factor` of its length, around the time at `share` of it, which stays in place. */
export function zoomed(
  view: Range,
  whole: Range,
  factor: number,
  share: number,
  unitNs: number,
): Range {
  const length = view.to - view.from;
  const least = Math.max(LEAST_NS / unitNs, 1);
  const next = Math.min(Math.max(length / factor, least), whole.to - whole.from);
  const at = view.from + length * share;
  return kept({ from: at - next * share, to: at + next * (1 - share) }, whole);
}

/** The view that shows `range` with some margin. */
export function around(range: Range, whole: Range, unitNs: number): Range {
  const length = Math.max(range.to - range.from, LEAST_NS / unitNs, 1);
  const margin = length * 0.15;
  return kept({ from: range.from - margin, to: range.from + length + margin }, whole);
}

/** The range of the same length that lies inside `whole`, as far as it can. */
export function kept(range: Range, whole: Range): Range {
  const length = Math.min(range.to - range.from, whole.to - whole.from);
  const from = Math.min(Math.max(range.from, whole.from), whole.to - length);
  return { from, to: from + length };
}
