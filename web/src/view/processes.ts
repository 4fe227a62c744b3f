/** Which process and which GIL the page is about. */

import type { ProcessSummary, Summary } from "../format/summary";
import { grouped, plural, seconds } from "../units/numbers";
import { printable } from "../units/names";
import { element, name } from "./dom";
import type { Store } from "./state";
import { wide } from "./threads";

/** How many processes are listed at first. */
const ROWS = 12;

/** What to call a GIL where several can be chosen. */
export function gilLabel(summary: Summary, index: number): string {
  const gil = summary.gils[index];
  const process = gil && summary.processes[gil.process];
  if (!gil || !process) return "no GIL";
  const several = summary.gils.filter((it) => it.process === gil.process).length > 1;
  const which = several ? `, GIL ${gil.gil}${gil.gil === 0 ? " (main interpreter)" : ""}` : "";
  return `${printable(process.name)} (pid ${process.pid})${which}`;
}

/** A choice between all GILs with data; null if there is only one. */
export function gilChoice(summary: Summary, store: Store): HTMLElement | null {
  if (summary.gils.length < 2) return null;
  const select = element("select", { id: "gil" });
  summary.gils.forEach((gil, index) => {
    const text = `${gilLabel(summary, index)}: waited ${seconds(gil.waited_s)}`;
    select.append(element("option", { value: index }, text));
  });
  select.value = String(store.now.gil);
  select.addEventListener("change", () => {
    store.set({ gil: Number(select.value), selection: null, picked: null, lane: null });
  });
  store.onChange((now) => {
    select.value = String(now.gil);
  });
  return element("p", { class: "choice" }, element("label", { for: "gil" }, "GIL of "), select);
}

/** The table of processes; null if there is only one. */
export function processTable(summary: Summary, store: Store): HTMLElement | null {
  const { processes } = summary;
  const others = summary.report.other_processes;
  if (processes.length < 2 && !others?.processes) return null;
  const body = element("tbody");
  let shown = 0;
  const more = element("button", { type: "button" });
  const showMore = (): void => {
    const next = processes.slice(shown, shown + (shown ? 100 : ROWS));
    next.forEach((_, offset) => body.append(row(summary, shown + offset, store)));
    shown += next.length;
    more.hidden = shown >= processes.length;
    more.textContent = `Show more of ${plural(processes.length, "process")}`;
  };
  more.addEventListener("click", showMore);
  showMore();
  const head = element("tr");
  for (const text of ["process", "pid", "threads", "held", "waited", ""]) {
    head.append(element("th", { scope: "col" }, text));
  }
  return element(
    "section",
    { "aria-labelledby": "processes" },
    element("h2", { id: "processes" }, "Processes"),
    wide("Processes", element("table", {}, element("thead", {}, head), body)),
    more,
    others &&
      element(
        "p",
        { class: "quiet" },
        `And ${plural(others.processes, "ended process")} that are not listed: held ` +
          `${seconds(others.held_s)}, waited ${seconds(others.waited_s)}.`,
      ),
  );
}

/** Why its GIL was not recorded. Where there was none, its waits without one may have been. */
function whyNot({ free_threaded: freeThreaded, not_recorded: why }: ProcessSummary): string {
  return `${freeThreaded ? "" : "not recorded: "}${printable(why ?? "")}`;
}

function row(summary: Summary, index: number, store: Store): HTMLElement {
  const process = summary.processes[index];
  const gil = summary.gils.findIndex((it) => it.process === index);
  const show = (): void => {
    store.set({ gil, selection: null, picked: null, lane: null });
    document.getElementById("timeline")?.scrollIntoView();
  };
  const said = process?.not_recorded
    ? element("span", { class: "quiet" }, whyNot(process))
    : gil < 0
      ? element(
          "span",
          { class: "quiet" },
          process?.held_s ? "not in this page" : "never used its GIL",
        )
      : element("button", { type: "button", onclick: show }, "Show");
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, name(process?.name ?? "?")),
    element("td", {}, process?.pid),
    element("td", {}, grouped(process?.threads ?? 0)),
    element("td", {}, seconds(process?.held_s ?? 0)),
    element("td", {}, seconds(process?.waited_s ?? 0)),
    element("td", { class: "text" }, said),
  );
}
