/** The table of threads: the worst first. */

import type { Figures, ThreadFigures } from "../model/figures";
import { duration, grouped, plural, share } from "../units/numbers";
import type { ShownGil } from "./context";
import { element, name, replace, shortName } from "./dom";

/** How many rows are shown at first, and more at each asking. */
const ROWS = 25;

/** The most characters of a name, and on a phone. */
const WIDE = 400;
const NARROW = 15;

interface Column {
  group: string;
  head: string;
  cell: (thread: ThreadFigures, span: number) => string;
}

const time = (value: number): string => (Number.isNaN(value) ? "–" : duration(value));
const number = (value: number): string => (Number.isNaN(value) ? "–" : grouped(value));

const COLUMNS: Column[] = [
  { group: "held", head: "time", cell: (it) => time(it.held) },
  { group: "held", head: "share", cell: (it, span) => share(it.held, span) },
  { group: "waited", head: "time", cell: (it) => time(it.waited) },
  { group: "waited", head: "share", cell: (it, span) => waitedShare(it.waited, span) },
  { group: "waits", head: "count", cell: (it) => number(it.waits.count) },
  { group: "waits", head: "p50", cell: (it) => time(it.waits.p50) },
  { group: "waits", head: "p99", cell: (it) => time(it.waits.p99) },
  { group: "waits", head: "max", cell: (it) => time(it.waits.max) },
  { group: "gaps", head: "mean", cell: (it) => time(it.gaps.mean) },
  { group: "gaps", head: "max", cell: (it) => time(it.gaps.max) },
  { group: "holds", head: "count", cell: (it) => number(it.holds.count) },
  { group: "holds", head: "max", cell: (it) => time(it.holds.max) },
  { group: "released", head: "freely", cell: (it) => number(it.voluntary) },
  { group: "released", head: "forced", cell: (it) => number(it.forced) },
];

/** Fills `place` with the threads of `figures`; `onPick` is called with the lane of a clicked one. */
export function showThreads(
  place: HTMLElement,
  figures: Figures,
  gil: ShownGil,
  onPick: (lane: number) => void,
): void {
  const { threads } = figures;
  const body = element("tbody");
  let shown = 0;
  const more = element("button", { type: "button" });
  const showMore = (): void => {
    const next = threads.slice(shown, shown + (shown ? 10 * ROWS : ROWS));
    for (const thread of next) body.append(row(thread, figures.span, gil, onPick));
    shown += next.length;
    more.hidden = shown >= threads.length;
    more.textContent = `Show more of ${plural(threads.length, "thread")}`;
  };
  more.addEventListener("click", showMore);
  showMore();
  const others =
    figures.others &&
    element(
      "p",
      { class: "quiet" },
      `And ${plural(figures.others.threads, "thread")} that are not listed: held ` +
        `${duration(figures.others.held)}, waited ${duration(figures.others.waited)}`,
    );
  replace(
    place,
    threads.length
      ? wide("Threads", element("table", { class: "threads" }, heads(), body))
      : element("p", { class: "quiet" }, "No thread held the GIL or waited for it in this time."),
    more,
    others,
  );
}

function heads(): HTMLElement {
  const groups = element("tr", {}, element("th", { rowspan: 2, scope: "col" }, "thread"));
  const names = element("tr");
  COLUMNS.forEach((column, index) => {
    const begins = COLUMNS[index - 1]?.group !== column.group;
    if (begins) {
      const columns = COLUMNS.filter((it) => it.group === column.group).length;
      groups.append(
        element("th", { colspan: columns, scope: "colgroup", class: "begins" }, column.group),
      );
    }
    names.append(element("th", { scope: "col", class: begins ? "begins" : null }, column.head));
  });
  return element("thead", {}, groups, names);
}

function row(
  thread: ThreadFigures,
  span: number,
  gil: ShownGil,
  onPick: (lane: number) => void,
): HTMLElement {
  const { lane } = thread;
  const label = lane === null ? thread.name : (gil.labels[lane] ?? thread.name);
  const head =
    lane === null
      ? name(label)
      : element(
          "button",
          {
            type: "button",
            class: "lane-link",
            title: "Show in the timeline",
            onclick: () => {
              onPick(lane);
            },
          },
          swatch(gil, lane),
          shortName(label, WIDE, NARROW),
        );
  const made = element("tr", {}, element("th", { scope: "row" }, head));
  COLUMNS.forEach((column, index) => {
    const begins = COLUMNS[index - 1]?.group !== column.group;
    const loud = column.group === "waited" && thread.waited >= span / 10;
    const classes = [begins && "begins", loud && "loud"].filter(Boolean).join(" ");
    made.append(element("td", { class: classes || null }, column.cell(thread, span)));
  });
  return made;
}

/** The colour of a thread. */
export function swatch(gil: ShownGil, lane: number): HTMLElement {
  return element("i", { class: `swatch holder-${gil.colourOf[lane] ?? 0}`, "aria-hidden": "true" });
}

/** Several threads together can wait for longer than the time took. */
function waitedShare(waited: number, span: number): string {
  return waited < span * 1.005 ? share(waited, span) : "";
}

/** A box that scrolls, also by keyboard, where its content is wider than the screen. */
export function wide(label: string, content: HTMLElement): HTMLElement {
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": label },
    content,
  );
}
