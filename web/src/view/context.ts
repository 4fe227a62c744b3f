/** What all parts of the page work with. */

import type { Lanes, Summary } from "../format/summary";
import type { PartyName } from "../model/figures";
import type { FullReport } from "../model/report";
import type { Range } from "../model/range";
import type { Client } from "../worker/client";
import { clock, moment } from "../units/moments";
import { HOLDER_COLOURS } from "./colours";
import type { Store } from "./state";

/** A GIL, ready to be shown. */
export interface ShownGil {
  index: number;
  lanes: Lanes;
  /** Lanes in the order of the screen: who held and waited most first. */
  order: number[];
  /** By lane, its colour. */
  colourOf: Uint8Array;
  /** By lane, what to call it: names that are not unique have the tid. */
  labels: string[];
}

/** The page's data and its worker. */
export interface Context {
  summary: Summary;
  client: Client;
  store: Store;
  /** The whole report, once it is there. */
  report: FullReport | null;
  /** The GIL that is shown, once its lanes are there. */
  gil: ShownGil | null;
}

/** All the time that the page is about. */
export function wholeOf(summary: Summary): Range {
  return { from: 0, to: Math.max(summary.end, 1) };
}

/** A moment of the page in words: seconds of the trace. */
export function momentOf(summary: Summary, units: number, stepNs: number): string {
  return moment(units * summary.unit_ns + summary.offset_s * 1e9, stepNs);
}

/** The same on the clock of whoever reads it, or "". */
export function clockOf(summary: Summary, units: number): string {
  return clock(summary.report.started_at, units * summary.unit_ns + summary.offset_s * 1e9);
}

/** From a moment of the report, in seconds of the trace, to units of the page, kept inside it. */
export function unitsOf(summary: Summary, seconds: number): number {
  const units = ((seconds - summary.offset_s) * 1e9) / summary.unit_ns;
  return Math.min(Math.max(Math.round(units), 0), summary.end);
}

/** What to call each lane: its name, and the tid where several have that name. */
export function labelsOf(lanes: Lanes): string[] {
  const count = new Map<string, number>();
  for (const name of lanes.name) count.set(name, (count.get(name) ?? 0) + 1);
  return lanes.name.map((name, lane) => {
    const tid = lanes.tid[lane];
    if (tid === null || tid === undefined) return name || "other threads";
    if (!name) return `thread-${tid}`;
    return (count.get(name) ?? 0) > 1 ? `${name} (${tid})` : name;
  });
}

/** By lane, a colour: the first in `order` have one of their own. */
export function coloursOf(order: readonly number[], held: Float64Array, lanes: number): Uint8Array {
  const colourOf = new Uint8Array(lanes).fill(HOLDER_COLOURS - 1);
  const holders = order.slice().sort((one, other) => (held[other] ?? 0) - (held[one] ?? 0));
  holders.slice(0, HOLDER_COLOURS - 1).forEach((lane, index) => (colourOf[lane] = index));
  return colourOf;
}

/** What to call a party to a wait. */
export function partyLabel(gil: ShownGil, party: PartyName): string {
  if (typeof party === "number") return gil.labels[party] ?? "";
  return { nobody: "nobody", others: "other threads", unknown: "unknown" }[party];
}
