/** What to do: each piece of advice with what to type, what it gains, and what it rests on. */

import type { Summary } from "../format/summary";
import type { Advice, Evidence, Gain } from "../model/advice";
import { digits, duration, plural, share } from "../units/numbers";
import { printable, typeable } from "../units/names";
import { element, name, type Child } from "./dom";
import { inTwo } from "./findings";

/** Of more pieces of advice than `MOST`, the first `FEW` are shown until the reader asks for all. */
const MOST = 4;
const FEW = 3;
const KINDS: Record<string, string> = {
  "switch-interval": "switch interval",
  "fewer-threads": "fewer threads",
  "to-a-process": "another process",
  "let-go": "let go",
  "free-threaded": "free-threaded Python",
  "not-the-gil": "nothing to gain here",
};
const MEASURES: Record<string, string> = {
  "wait-after-blocking-call": "wait after a blocking call",
  "waited-per-second": "waited in each second",
};
/** How long a button says that it has copied, in ms. */
const COPIED_FOR = 2000;

/** The section; it says how to get advice where there is none. */
export function adviceSection(summary: Summary): HTMLElement {
  const heading = element("h2", { id: "advice" }, "What to do");
  const place = { class: "advised", "aria-labelledby": "advice" };
  const { advised } = summary;
  if (!advised?.advice.length) return element("section", place, heading, howToGetIt(summary));
  const items = advised.advice.map(item);
  const list = element("ol", { class: "advice-list" }, ...items);
  const isLong = items.length > MOST;
  if (isLong) for (const it of items.slice(FEW)) it.hidden = true;
  const more = element(
    "button",
    {
      type: "button",
      class: "more",
      onclick: () => {
        for (const it of items) it.hidden = false;
        more.remove();
      },
    },
    `Show ${items.length - FEW} more`,
  );
  return element("section", place, heading, list, isLong && more, rejected(advised.rejected));
}

function howToGetIt(summary: Summary): HTMLElement {
  const file = summary.source || "TRACE";
  return element(
    "p",
    { class: "quiet" },
    "Advice was left out: it replays the trace some dozens of times. To have it here, run ",
    element("code", {}, name(`ungil report ${quoted(file)} --html OUT.html --advise`)),
    "; to read it in a terminal, ",
    element("code", {}, name(`ungil advise ${quoted(file)}`)),
    ".",
  );
}

/** A word as a shell reads it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function item(advice: Advice): HTMLElement {
  const isNotGil = advice.kind === "not-the-gil";
  const { headline, rest } = isNotGil ? { headline: advice.text, rest: "" } : inTwo(advice.text);
  const { level, because } = advice.confidence;
  const kind = KINDS[advice.kind] ?? printable(advice.kind);
  return element(
    "li",
    { class: `finding advice-item ${isNotGil ? "not-gil" : ""}` },
    element("div", { class: "number" }, ...gained(advice.gain)),
    element(
      "div",
      {},
      element("h3", {}, element("span", { class: "kind" }, kind), " ", name(begun(headline))),
      rest && element("p", { class: "rest" }, name(begun(rest))),
      typed(advice),
      element(
        "details",
        { class: "because" },
        element(
          "summary",
          {},
          element("b", { class: level }, `${begun(level)} confidence`),
          ", why",
        ),
        element("p", {}, name(begun(because)), "."),
        advice.evidence.length > 0 && element("ul", {}, ...advice.evidence.map(shown)),
      ),
    ),
  );
}

/** What is predicted: by how much less, from what to what, and the range. */
function gained(gain: Gain | null): Child[] {
  if (!gain) return [element("span", { class: "none" }, "no prediction")];
  const less = gain.before > 0 ? 1 - gain.after / gain.before : 0;
  const value = (it: number): string => amount(it, gain.unit);
  return [
    element("b", {}, `−${share(less, 1)}`),
    ` ${MEASURES[gain.measure] ?? printable(gain.measure)}: `,
    `${value(gain.before)} → ${value(gain.after)}, `,
    `between ${value(gain.low)} and ${value(gain.high)}`,
  ];
}

function amount(value: number, unit: string): string {
  switch (unit) {
    case "ms":
      return duration(value * 1e6);
    case "s":
      return duration(value * 1e9);
    case "s/s":
      return `${duration(value * 1e9)}/s`;
    case "share":
      return share(value, 1);
    default:
      return value >= 1000 || Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
  }
}

function shown({ what, value, unit }: Evidence): HTMLElement {
  return element("li", {}, name(what), `: ${amount(value, unit)}`);
}

/** What to type, and a button that copies it. */
function typed({ action }: Advice): HTMLElement | null {
  const text = action.shell ?? action.code;
  if (!text) return null;
  const lines = text.split("\n").map(printable).join("\n");
  const said = action.shell ? "command" : "code";
  const code = element("code", { dir: "ltr" }, lines);
  // What holds something invisible is not for a terminal.
  if (!typeable(text)) return element("pre", { class: "typed" }, code);
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.setAttribute("aria-label", `Copy the ${said}`);
  copy.addEventListener("click", () => {
    void copied(text, code).then((isDone) => {
      copy.textContent = isDone ? "Copied" : "Selected";
      window.setTimeout(() => (copy.textContent = "Copy"), COPIED_FOR);
    });
  });
  return element("div", { class: "typing" }, element("pre", { class: "typed" }, code), copy);
}

/** Whether `text` is on the clipboard now; if the browser does not allow that, `shown` is selected. */
async function copied(text: string, shown: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}

function rejected(advice: readonly Advice[]): HTMLElement | null {
  if (!advice.length) return null;
  const summary = `Tried in a simulation, and of little use: ${plural(advice.length, "other cure")}`;
  const list = element("ul", {}, ...advice.map((it) => element("li", {}, name(begun(it.text)))));
  return element("details", { class: "rejected" }, element("summary", {}, summary), list);
}

/** A sentence begins with a capital. */
function begun(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
