/** The ten seconds in which most was waited. */

import type { Summary } from "../format/summary";
import type { Range } from "../model/range";
import { duration } from "../units/numbers";
import { clockOf, momentOf, type Context } from "./context";
import { element, replace } from "./dom";
import { around } from "./timeline/moves";

/** Fills `place` with those of the GIL that is shown, and a button that selects them. */
export function showWorst(place: HTMLElement, { store, summary }: Context, whole: Range): void {
  const worst = worstTenSeconds(summary, store.now.gil);
  place.hidden = !worst;
  if (!worst) return;
  const range = { from: Math.floor(worst.from), to: Math.ceil(worst.to) };
  const at = [clockOf(summary, range.from), momentOf(summary, range.from, 1e8)].filter(Boolean);
  const waited = duration(worst.waited * summary.unit_ns);
  const show = (): void => {
    store.set({ selection: range, view: around(range, whole, summary.unit_ns) });
  };
  replace(
    place,
    `Worst ten seconds: from ${at.join(", ")}, ${waited} waited. `,
    element("button", { type: "button", onclick: show }, "Look at them"),
  );
}

/** Waits of less than this part of the ten seconds are nothing to look at. */
const WORTH_A_LOOK = 0.01;

/** The ten seconds in which most was waited, in units; null if the run is not longer, or if that is little. */
export function worstTenSeconds(
  summary: Summary,
  gil: number,
): { from: number; to: number; waited: number } | null {
  const busy = summary.gils[gil]?.busy;
  const length = 10e9 / summary.unit_ns;
  if (!busy || summary.end <= length) return null;
  const buckets = Math.max(Math.round(length / busy.width), 1);
  let waited = 0;
  let best = { from: 0, waited: 0 };
  busy.waited.forEach((value, bucket) => {
    waited += value - (bucket >= buckets ? (busy.waited[bucket - buckets] as number) : 0);
    if (waited > best.waited) best = { from: Math.max(bucket - buckets + 1, 0), waited };
  });
  if (best.waited < WORTH_A_LOOK * length) return null;
  const from = best.from * busy.width;
  return { from, to: Math.min(from + length, summary.end), waited: best.waited };
}
