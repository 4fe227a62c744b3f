/** The first screen: what the trace is of, its findings as headlines, and how busy the GIL was. */

import { isRepeated } from "../model/advice";
import { findingNumbers } from "../model/finding_numbers";
import type { Numbers } from "../model/numbers";
import { theSame, withRepeats } from "../model/repeats";
import type { Finding } from "../model/report";
import type { Summary } from "../format/summary";
import { duration, plural, seconds, share } from "../units/numbers";
import { printable } from "../units/names";
import { clock } from "../units/moments";
import { unitsOf, wholeOf, type ShownGil } from "./context";
import { element, name, replace } from "./dom";
import type { Store } from "./state";

/** So many findings are shown until the reader asks for all: what to do then still has room. */
const FEW = 3;
const WORDS: Record<string, string> = {
  none: "ok",
  "not-recorded": "not recorded",
  "native-hold": "native hold",
  "late-wakeups": "late wake-ups",
};

/** So large a part of all events (of 1) is told before the numbers that lack it. */
const MUCH_LOST = 0.05;

/** The title of the page: the program, and the facts about its run. */
export function title(summary: Summary): HTMLElement {
  const process = summary.processes[0];
  const count = summary.processes.length + (summary.report.other_processes?.processes ?? 0);
  const facts = [
    process ? `pid ${process.pid}` : null,
    process?.python ? `Python ${printable(process.python)}` : null,
    summary.report.duration_s > 0 ? seconds(summary.report.duration_s) : null,
    process ? plural(process.threads, "thread") : null,
    count > 1 ? `1 of ${plural(count, "process")}` : null,
    begun(summary),
    busy(summary),
  ].filter(Boolean);
  const { part } = summary.report;
  return element(
    "div",
    { class: "title" },
    element("h1", {}, name(process?.name ?? "No Python process was recorded")),
    element("p", { class: "quiet" }, facts.join(", ")),
    part &&
      element(
        "p",
        { class: "part" },
        `Only a part of the trace: from ${seconds(part.start_s)} to ${seconds(part.end_s)}`,
      ),
    summary.lost_share > MUCH_LOST &&
      element(
        "p",
        { class: "part" },
        `${share(summary.lost_share, 1)} of all events were lost: findings, medians and maxima are ` +
          "incomplete, and the timeline shows lost holds as idle time",
      ),
  );
}

/** Findings and advice may leave no room for the bar on the first screen. */
function busy(summary: Summary): string | null {
  const [gil, another] = summary.gils.filter((it) => it.process === 0);
  if (!gil || another || gil.busy_s <= 0) return null;
  const held = share(gil.busy_held_s, gil.busy_s);
  return `GIL held ${held}, contended ${share(gil.contended_s, gil.busy_s)} of the time`;
}

function begun(summary: Summary): string | null {
  const at = clock(summary.report.started_at, 0, true);
  return at ? `began ${at}` : null;
}

/** Where a finding's number and its words about a selected time stand. */
interface Place {
  number: HTMLElement;
  words: HTMLElement;
}

/** The findings, what explains most wait time first. */
export class Findings {
  /** What goes into the page. */
  readonly element: HTMLElement;
  readonly #summary: Summary;
  /** Of those that are shown, by finding. */
  readonly #places = new Map<Finding, Place>();

  constructor(summary: Summary, store: Store) {
    this.#summary = summary;
    const list = element("ol", { class: "findings" });
    for (const { told, pids } of withRepeats(summary.report.findings, (it) => it.pid)) {
      list.append(this.#item(told, pids, store));
    }
    const items = [...list.children] as HTMLElement[];
    const isLong = items.length > FEW;
    for (const item of items.slice(FEW)) item.hidden = true;
    const more = element("button", { type: "button", class: "more" });
    more.textContent = `Show ${plural(items.length - FEW, "more finding")}`;
    more.addEventListener("click", () => {
      for (const item of items) item.hidden = false;
      more.remove();
    });
    this.element = element(
      "section",
      { "aria-labelledby": "findings" },
      element("h2", { id: "findings", class: "unseen" }, "Findings"),
      list,
      isLong && more,
    );
    this.show(null, null);
  }

  /** Shows the numbers of a selected time; those of the run if `numbers` is null. */
  show(numbers: Numbers | null, gil: ShownGil | null): void {
    const summary = this.#summary;
    this.#places.forEach(({ number, words }, finding) => {
      const isHere = gil !== null && gilOf(finding, summary) === gil.index;
      const found =
        numbers && isHere ? findingNumbers(finding, numbers, gil.lanes, summary.unit_ns) : null;
      const [value, unit] = oneNumber(finding);
      if (found && found.cost !== null) {
        const cost = duration(found.cost * summary.unit_ns);
        replace(number, element("b", {}, cost), " waited in the selected time");
      } else {
        replace(number, element("b", {}, value), ` ${unit}${numbers ? ", in the whole run" : ""}`);
      }
      words.hidden = !found;
      replace(words, found && `In the selected time: ${found.words}.`);
    });
  }

  #item(finding: Finding, pids: readonly number[], store: Store): HTMLElement {
    // All threads are treated alike there, but the GIL is the limit of all.
    const isLimit = finding.kind === "none" && Boolean(finding.advice);
    const word = isLimit ? "bottleneck" : (WORDS[finding.kind] ?? printable(finding.kind));
    const { headline, rest } = inTwo(finding.text);
    const window = finding.scope === "window" ? finding.window : finding.worst;
    const number = element("p", { class: "number" });
    const words = element("p", { class: "of-selection" });
    this.#places.set(finding, { number, words });
    return element(
      "li",
      { class: `finding ${finding.kind === "none" && !isLimit ? "fine" : ""}` },
      number,
      element(
        "div",
        {},
        element("h3", {}, element("span", { class: "kind" }, word), " ", name(headline, "cause")),
        rest && element("p", { class: "rest" }, name(rest)),
        words,
        finding.advice &&
          !isRepeated(finding, this.#summary.advised) &&
          element("p", { class: "advice" }, name(finding.advice)),
        pids.length > 0 && element("p", { class: "same" }, `It is ${theSame(pids)}.`),
        window && worst(window, finding, this.#summary, store),
      ),
    );
  }
}

function worst(
  window: NonNullable<Finding["window"]>,
  finding: Finding,
  summary: Summary,
  store: Store,
): HTMLElement {
  const cost = finding.worst?.cost_s ?? finding.cost_s ?? 0;
  const at = clock(window.started_at, 0) || `${window.start_s.toFixed(1)}s`;
  const length = seconds(window.end_s - window.start_s);
  const range = {
    from: unitsOf(summary, window.start_s),
    to: unitsOf(summary, window.end_s),
  };
  const whole = wholeOf(summary);
  const show = (): void => {
    const margin = (range.to - range.from) / 10;
    const view = {
      from: Math.max(range.from - margin, 0),
      to: Math.min(range.to + margin, whole.to),
    };
    const gil = gilOf(finding, summary) ?? store.now.gil;
    store.set({ gil, selection: range, view, picked: null });
    document.getElementById("timeline")?.scrollIntoView();
  };
  return element(
    "p",
    { class: "worst" },
    `Worst from ${at} for ${length}: ${seconds(cost)} waited. `,
    range.to > range.from && element("button", { type: "button", onclick: show }, "Look at it"),
  );
}

/** The GIL of the page that a finding is about. */
function gilOf(finding: Finding, summary: Summary): number | null {
  const index = summary.gils.findIndex(
    (gil) =>
      summary.processes[gil.process]?.pid === finding.pid && gil.gil === (finding.gil ?? gil.gil),
  );
  return index < 0 ? null : index;
}

/** The number of a finding that says most, and what it counts. */
function oneNumber(finding: Finding): [string, string] {
  if (finding.kind === "not-recorded") return ["", ""];
  if (finding.kind === "none") {
    const held = finding["held_share"];
    return typeof held === "number" ? [share(held, 1), "of the time held"] : ["0", "waited"];
  }
  return [seconds(finding.cost_s ?? 0), "waited, summed"];
}

/** The first clause of a finding's sentence, which names who and what, and the numbers behind it. */
export function inTwo(text: string): { headline: string; rest: string } {
  const process = /^.{1,200}? \(pid \d+\)(?:, [^:]{1,60})?: /u.exec(text)?.[0] ?? "";
  const end = /: |; /u.exec(text.slice(process.length));
  if (!end) return { headline: text, rest: "" };
  const at = process.length + end.index;
  return { headline: text.slice(0, at), rest: text.slice(at + end[0].length) };
}
