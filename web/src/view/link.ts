/** The link that keeps the view: the part of the address after `#`. */

import type { Range } from "../model/range";
import type { State } from "./state";

/** What a link can say. */
export interface Linked {
  gil: number;
  view: Range | null;
  selection: Range | null;
  /** Where the picked hold or wait is. */
  pick: { lane: number; at: number } | null;
}

/** What the part of an address after `#` says, as far as it makes sense. */
export function readLink(hash: string): Linked {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const range = (name: string): Range | null => {
    const match = /^(\d{1,16})-(\d{1,16})$/.exec(said.get(name) ?? "");
    const [from, to] = [Number(match?.[1]), Number(match?.[2])];
    return match && to > from ? { from, to } : null;
  };
  const pick = /^(\d{1,6})@(\d{1,16})$/.exec(said.get("pick") ?? "");
  const gil = Number(said.get("gil") ?? 0);
  return {
    gil: Number.isSafeInteger(gil) && gil >= 0 ? gil : 0,
    view: range("view"),
    selection: range("range"),
    pick: pick ? { lane: Number(pick[1]), at: Number(pick[2]) } : null,
  };
}

/** The part of the address that keeps `state`. */
export function writeLink(state: State, whole: Range): string {
  const parts = [`gil=${state.gil}`];
  const written = ({ from, to }: Range): string => `${Math.round(from)}-${Math.round(to)}`;
  if (written(state.view) !== written(whole)) parts.push(`view=${written(state.view)}`);
  if (state.selection) parts.push(`range=${written(state.selection)}`);
  const { picked } = state;
  if (picked) parts.push(`pick=${picked.lane}@${picked.begin}`);
  return `#${parts.join("&")}`;
}
