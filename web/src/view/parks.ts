/** What threads waited for in a process without a GIL. */

import type { Summary } from "../format/summary";
import * as model from "../model/parks";
import type { ParkedAt, ProcessReport } from "../model/report";
import { duration, grouped, tally } from "../units/numbers";
import { element, name, replace } from "./dom";
import { wide } from "./threads";

/** How many threads, and how many waits, are shown. */
const THREADS = 12;
const WAITS = 12;
const UNSEEN =
  "Not seen: locks that were free, or became free during the 40 tries of a thread, and which " +
  "thread held a lock; the waker is the thread that released it last.";

/** The section, empty until `showParks` fills it; null if every process had its GIL. */
export function parksSection(summary: Summary): HTMLElement | null {
  return summary.processes.some((process) => process.free_threaded)
    ? element("section", { "aria-labelledby": "parks", hidden: true })
    : null;
}

/**
 * Fills `place` with the waits of those of these processes that ran without a GIL; `said` is what
 * else is to be said of them.
 */
export function showParks(place: HTMLElement, processes: ProcessReport[], said: string): void {
  const those = processes.filter((process) => process.parks);
  if (!those.length) return;
  place.hidden = false;
  replace(
    place,
    element("h2", { id: "parks" }, "Waits without a GIL"),
    ...those.flatMap((process) => [
      those.length > 1 && element("h3", {}, `pid ${process.pid}`),
      ...tables(process),
    ]),
    element("p", { class: "quiet" }, UNSEEN + said),
  );
}

function tables(process: ProcessReport): HTMLElement[] {
  const { parks } = process;
  if (!parks) return [];
  const waits = model.waitsForOthers(parks);
  return [
    element("p", {}, `${off(process)}${model.saidOfPauses(parks, process.duration_s ?? 0)}`),
    wide("Threads without a GIL", threads(process)),
    ...more(parks.threads.length - THREADS, "threads"),
    ...(waits.length
      ? [
          element("h3", {}, "Who waited for what"),
          wide("Who waited for what", what(waits.slice(0, WAITS))),
        ]
      : []),
    ...more(waits.length - WAITS, "waits"),
  ];
}

function off({ free_threaded: state }: ProcessReport): string {
  return state?.gil === "off"
    ? "The GIL was off. The timeline below has the moments in which imports switched it on. "
    : "";
}

/** That there are so many more, if there are. */
export function more(count: number, noun: string): HTMLElement[] {
  return count > 0 ? [element("p", { class: "quiet" }, `And ${grouped(count)} more ${noun}.`)] : [];
}

function threads({ parks }: ProcessReport): HTMLElement {
  const rows = parks?.threads ?? [];
  const present = new Set(rows.flatMap(({ causes }) => causes.map(({ cause }) => cause)));
  const causes = Object.keys(model.CAUSES).filter((cause) => present.has(cause));
  const body = element("tbody");
  for (const thread of rows.slice(0, THREADS)) {
    const waited = new Map(thread.causes.map((it) => [it.cause, it.waited_s]));
    const cells = causes.map((cause) => {
      const seconds = waited.get(cause);
      return element("td", {}, seconds === undefined ? "–" : duration(seconds * 1e9));
    });
    const called = element("th", { scope: "row" }, name(thread.name || `thread-${thread.tid}`));
    body.append(
      element("tr", {}, called, ...cells, element("td", {}, tally(model.parksOf(thread)))),
    );
  }
  return table(["parked for", ...causes.map((it) => model.CAUSES[it] ?? it), "parks"], body, []);
}

function what(waits: ParkedAt[]): HTMLElement {
  const body = element("tbody");
  for (const wait of waits) {
    const at = wait.places.slice(0, 2).map((it) => model.lineOf(it.frame, it.user_frame ?? null));
    const woken = wait.wakers.slice(0, 3).map((waker) => model.wokenBy(waker, wait));
    body.append(
      element(
        "tr",
        {},
        element("th", { scope: "row" }, name(wait.name || `thread-${wait.tid}`)),
        element("td", {}, duration(wait.waited_s * 1e9)),
        element("td", {}, tally(wait.count)),
        element("td", {}, duration(wait.max_ms * 1e6)),
        element("td", { class: "text code" }, name(model.waitedFor(wait))),
        element("td", { class: "text code" }, name(at.join(", "))),
        element("td", { class: "text code" }, name(woken.join(", "))),
      ),
    );
  }
  const heads = ["thread", "waited", "parks", "longest", "for", "at", "woken by"];
  return table(heads, body, ["for", "at", "woken by"]);
}

/** A table with these heads, of which `texts` stand above text. */
export function table(heads: string[], body: HTMLElement, texts: string[]): HTMLElement {
  const head = element("tr");
  heads.forEach((text, index) => {
    const isText = index === 0 || texts.includes(text);
    head.append(element("th", { scope: "col", class: isText ? "text" : null }, text));
  });
  return element("table", { class: "holds" }, element("thead", {}, head), body);
}
