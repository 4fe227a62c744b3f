/** The longest holds, and what the holder did. */

import type { Figures, LongHoldFigures } from "../model/figures";
import type { Native } from "../model/report";
import { duration, grouped, plural } from "../units/numbers";
import { printable } from "../units/names";
import { momentOf, type Context, type ShownGil } from "./context";
import { element, name, replace } from "./dom";
import { wide } from "./threads";

/** How many are shown at first. */
const ROWS = 10;

/** Fills `place` with the long holds of `figures`; `onPick` is called with a clicked one. */
export function showLongHolds(
  place: HTMLElement,
  figures: Figures,
  gil: ShownGil,
  context: Context,
  onPick: (hold: LongHoldFigures) => void,
): void {
  const { longHolds } = figures;
  if (!longHolds.length) {
    const least = `${context.summary.blame_after_ms} ms`;
    const text =
      figures.source === "rough"
        ? "This page has no individual holds of this time."
        : `No hold lasted ${least} or longer in this time.`;
    replace(place, element("p", { class: "quiet" }, text));
    return;
  }
  const body = element("tbody");
  for (const hold of longHolds.slice(0, ROWS)) body.append(row(hold, gil, context, onPick));
  const head = element("tr");
  for (const text of ["at", "thread", "length", "others waited", "not run", "what it did"]) {
    head.append(element("th", { scope: "col", class: text === "thread" ? "text" : null }, text));
  }
  const more = figures.longHoldsCount - ROWS;
  replace(
    place,
    wide("Longest holds", element("table", { class: "holds" }, element("thead", {}, head), body)),
    more > 0 && element("p", { class: "quiet" }, `And ${grouped(more)} more.`),
  );
}

function row(
  hold: LongHoldFigures,
  gil: ShownGil,
  context: Context,
  onPick: (hold: LongHoldFigures) => void,
): HTMLElement {
  const { summary } = context;
  const at = momentOf(summary, hold.begin / summary.unit_ns, 1e6);
  const label = hold.lane === null ? hold.name : (gil.labels[hold.lane] ?? hold.name);
  const pick = element(
    "button",
    {
      type: "button",
      title: "Show in the timeline",
      onclick: () => {
        onPick(hold);
      },
    },
    at,
  );
  const waiters = hold.waiters ? ` (${plural(hold.waiters, "thread")})` : "";
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, hold.lane === null ? at : pick),
    element("td", { class: "text" }, name(label)),
    element("td", {}, duration(hold.length)),
    element("td", {}, hold.waited > 0 ? duration(hold.waited) + waiters : "–"),
    element("td", {}, hold.notRun ? duration(hold.notRun) : "–"),
    element("td", { class: "text code" }, what(hold)),
  );
}

function what(hold: LongHoldFigures): HTMLElement | string {
  if (hold.stack === null) return "click its time";
  const [inner] = hold.stack;
  if (!inner) return hold.missing ? `no stack: ${printable(hold.missing)}` : "no stack";
  const caller = hold.userFrame && hold.userFrame !== inner ? `, called by ${hold.userFrame}` : "";
  const native = hold.native ? `; native code: ${nativeName(hold.native)}` : "";
  return name(inner + caller + native);
}

/** A native function with its library, and the one that was running if that is another. */
function nativeName(native: Native): string {
  const called = inLibrary(native.function, native.library);
  const { innermost, innermost_library: library } = native;
  const isSame =
    (innermost === null || innermost === native.function) &&
    (library === "" || library === native.library);
  return isSame ? called : `${called}, mostly ${inLibrary(innermost, library)}`;
}

function inLibrary(of: string | null, library: string): string {
  const file = library.slice(library.lastIndexOf("/") + 1) || "code generated at run time";
  return of === null ? `a function in ${file}` : `${of} (${file})`;
}
