/** What stands at the end of the page: what the recorder had to say, and where the page is from. */

import type { Summary } from "../format/summary";
import { plural } from "../units/numbers";
import { element, name } from "./dom";

/** Notes of the report, and what was left out of the page; null if there are none. */
export function notes(summary: Summary): HTMLElement | null {
  const said = [...(summary.report.notes ?? []), ...summary.bounds];
  const lost = summary.report.lost_events;
  if (lost) said.push(`${plural(lost, "event")} lost, because rings were full`);
  if (!said.length) return null;
  const list = element("ul");
  for (const note of said) list.append(element("li", {}, name(note)));
  return element(
    "section",
    { "aria-labelledby": "notes" },
    element("h2", { id: "notes" }, "Notes"),
    list,
  );
}

/** The last line. */
export function footer(summary: Summary): HTMLElement {
  return element(
    "footer",
    { class: "quiet" },
    name(summary.source),
    ", made by ",
    name(summary.made_by),
    ". The URL of this page keeps your zoom and selection.",
  );
}
