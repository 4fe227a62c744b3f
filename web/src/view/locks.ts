/** Locks of the program that its threads took in turn, off the GIL. */

import { contended, lockNumbers } from "../model/locks";
import { wokenBy } from "../model/parks";
import type { ParkedAt, ProcessReport } from "../model/report";
import { duration, share, tally } from "../units/numbers";
import { element, name, replace } from "./dom";
import { more, table } from "./parks";
import { wide } from "./threads";

/** How many waits are shown of a process, and of how many processes. */
const WAITS = 12;
const PROCESSES = 5;
const LAST = "released by";
const UNSEEN =
  "Not shown: locks at which idle threads wait, such as those of queues, and locks that were " +
  "free. Who let go of a lock may have had it for a part of the wait only.";

/** The section, hidden until `showLocks` finds something to show. */
export function locksSection(): HTMLElement {
  return element("section", { "aria-labelledby": "locks", hidden: true });
}

/**
 * Fills `place` with the waits for locks of these processes, if there are any or have been; `said`
 * is what else is to be said of them.
 */
export function showLocks(place: HTMLElement, processes: ProcessReport[], said: string): void {
  const all = processes.map((process) => ({ process, rows: contended(process) }));
  const those = all.filter(({ rows }) => rows.length);
  if (!those.length && place.hidden) return;
  place.hidden = false;
  replace(
    place,
    element("h2", { id: "locks" }, "Who waited for locks"),
    ...those
      .slice(0, PROCESSES)
      .flatMap(({ process, rows }) => [
        those.length > 1 && element("h3", {}, `pid ${process.pid}`),
        wide("Who waited for locks", waits(process, rows)),
        ...more(rows.length - WAITS, "waits"),
      ]),
    ...more(those.length - PROCESSES, "processes"),
    !those.length && element("p", {}, "No thread waited for a lock for long."),
    element("p", { class: "quiet" }, UNSEEN + said),
  );
}

function waits(process: ProcessReport, rows: ParkedAt[]): HTMLElement {
  const numbers = lockNumbers(rows);
  const body = element("tbody");
  for (const wait of rows.slice(0, WAITS)) {
    const last = wait.wakers.slice(0, 3).map((waker) => wokenBy(waker, wait));
    body.append(
      element(
        "tr",
        {},
        element("th", { scope: "row" }, name(wait.name || `thread-${wait.tid}`)),
        element("td", {}, duration(wait.waited_s * 1e9)),
        element("td", {}, share(wait.waited_s, process.duration_s ?? 0)),
        element("td", {}, tally(wait.count)),
        element("td", {}, duration(wait.max_ms * 1e6)),
        element("td", {}, `${numbers.get(wait.lock) ?? ""}`),
        element("td", { class: "text code" }, name(last.join(", "))),
      ),
    );
  }
  return table(["thread", "waited", "of the time", "times", "longest", "lock", LAST], body, [LAST]);
}
