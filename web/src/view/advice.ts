/** What to do: each piece of advice with what to type, what it gains, and what it rests on. */

import type { Summary } from "../format/summary";
import type { Advice, Advised, Evidence, Gain } from "../model/advice";
import { theSame, withRepeats } from "../model/repeats";
import { digits, duration, plural, share } from "../units/numbers";
import { printable, typeable } from "../units/names";
import { element, name, type Child } from "./dom";

/** Of more pieces of advice than `MOST`, the first `FEW` are shown until the reader asks for all. */
const MOST = 4;
const FEW = 3;
const KINDS: Record<string, string> = {
  "switch-interval": "switch interval",
  "fewer-threads": "fewer threads",
  "fewer-collections": "less garbage collection",
  "early-imports": "imports before threads",
  "to-a-process": "another process",
  "let-go": "release the GIL",
  "free-threaded": "free-threaded Python",
};
const NOTHING = "nothing to gain here";
/** How long a button says that it has copied, in ms. */
const COPIED_FOR = 2000;

/** A piece of advice, and the processes for which others ask for the same. */
type Told = ReturnType<typeof once>[number];

/** Each piece that asks for something else. */
function once(advice: readonly Advice[]): ReturnType<typeof withRepeats<Advice>> {
  return withRepeats(advice, (it) => it.subject.pid);
}

/** What kind of advice it is. */
function label({ kind, text }: Advice): string {
  if (kind === "not-the-gil") return text.startsWith(NOTHING) ? NOTHING : "not the GIL";
  return KINDS[kind] ?? printable(kind);
}

/** The section; it says how to get advice where there is none. */
export function adviceSection(summary: Summary): HTMLElement {
  const heading = element("h2", { id: "advice" }, "What to do");
  const place = { class: "advised", "aria-labelledby": "advice" };
  const { advised } = summary;
  if (!advised?.advice.length) return element("section", place, heading, howToGetIt(summary));
  const items = once(advised.advice).map(item);
  openForPrint(items);
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
  const order =
    "the largest predicted gain first; of similar ones, the one that takes least effort";
  if (items.length > 1) heading.append(" ", element("span", { class: "quiet" }, order));
  const rest = [isLong && more, rejected(advised.rejected), gilsLeftOut(advised)];
  return element("section", place, heading, list, ...rest);
}

/** That threads wait for more GILs than cures were looked for. */
function gilsLeftOut({ gils_left_out: gils }: Advised): HTMLElement | null {
  if (!gils) return null;
  const text = `Nothing was simulated for ${plural(gils, "other GIL")}, at which threads wait less.`;
  return element("p", { class: "quiet" }, text);
}

function howToGetIt(summary: Summary): HTMLElement {
  const file = summary.source || "TRACE";
  return element(
    "p",
    { class: "quiet" },
    "This page has no advice, which takes dozens of simulations of the trace. To add it, run ",
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

/** A piece of advice: a line that opens. The first one is open. */
function item({ told: advice, pids }: Told, index: number): HTMLElement {
  const { headline, rest } = parts(advice);
  const kind = label(advice);
  const isNotGil = advice.kind === "not-the-gil";
  return element(
    "li",
    { class: `advice-item ${isNotGil ? "not-gil" : ""}` },
    element(
      "details",
      { open: index === 0 },
      element(
        "summary",
        {},
        element("b", { class: "less" }, less(advice.gain)),
        element("span", { class: "kind" }, kind),
        " ",
        element("h3", {}, name(begun(headline))),
      ),
      element(
        "div",
        { class: "about" },
        rest && element("p", { class: "rest" }, name(begun(rest)), range(advice.gain)),
        typed(advice),
        pids.length > 0 && element("p", { class: "same" }, `${begun(theSame(pids))}.`),
        ...sure(advice),
      ),
    ),
  );
}

/** What to do, and what that is predicted to gain. */
function parts(advice: Advice): { headline: string; rest: string } {
  const { kind, text: said, gain } = advice;
  // What its label says already.
  const again = `${label(advice)}: `;
  const text = said.startsWith(again) ? said.slice(again.length) : said;
  const at = kind === "not-the-gil" || !gain ? -1 : text.lastIndexOf(": ");
  return at < 0
    ? { headline: text, rest: "" }
    : { headline: text.slice(0, at), rest: text.slice(at + 2) };
}

/** By how much less, as predicted. */
function less(gain: Gain | null): string {
  if (!gain || !(gain.before > 0)) return "";
  const part = 1 - gain.after / gain.before;
  return part >= 0 ? `−${share(part, 1)}` : `+${share(-part, 1)}`;
}

/** Between what the prediction lies, if it may be other than 0. */
function range(gain: Gain | null): string {
  if (!gain || gain.high === 0) return "";
  return ` (between ${amount(gain.low, gain.unit)} and ${amount(gain.high, gain.unit)})`;
}

/** How sure it is, and what the trace shows for it. */
function sure({ confidence: { level, because }, gain, evidence }: Advice): Child[] {
  const said = [`${begun(level)} confidence`, gain ? "" : ", no prediction"].join("");
  return [
    element("p", { class: "sure" }, element("b", { class: level }, said), ": ", name(because), "."),
    evidence.length > 0 &&
      element(
        "details",
        { class: "evidence" },
        element("summary", {}, "What the trace shows for it"),
        element("ul", {}, ...evidence.map(shown)),
      ),
  ];
}

function amount(value: number, unit: string): string {
  switch (unit) {
    case "ms":
      return length(value * 1e6);
    case "s":
      return length(value * 1e9);
    case "s/s":
      return `${length(value * 1e9)}/s`;
    case "share":
      return share(value, 1);
    default:
      return value >= 1000 || Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
  }
}

/** A length of time in ns, as the sentences of advice write it: `35.1 µs`. */
function length(ns: number): string {
  return duration(ns).replace(/[nmµ]?s$/, (unit) => ` ${unit}`);
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
  // What is wider than its place can be scrolled with keys.
  const whole = element(
    "pre",
    { class: "typed", tabindex: 0, role: "group", "aria-label": `The ${said}` },
    code,
  );
  if (!typeable(text)) return whole;
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.setAttribute("aria-label", `Copy the ${said}`);
  copy.addEventListener("click", () => {
    void copied(text, code).then((isDone) => {
      copy.textContent = isDone ? "Copied" : "Selected";
      window.setTimeout(() => (copy.textContent = "Copy"), COPIED_FOR);
    });
  });
  return element("div", { class: "typing" }, whole, copy);
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

/** On paper nothing can be opened. */
function openForPrint(items: readonly HTMLElement[]): void {
  const closed = (): HTMLDetailsElement[] =>
    items.flatMap((it) => [...it.querySelectorAll("details")]).filter((it) => !it.open);
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    opened = closed();
    for (const it of opened) it.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const it of opened) it.open = false;
  });
}

function rejected(advice: readonly Advice[]): HTMLElement | null {
  if (!advice.length) return null;
  const told = once(advice);
  const summary = `Simulated, and of little use: ${plural(told.length, "other cure")}`;
  const line = ({ told: { text }, pids }: Told): HTMLElement =>
    element("li", {}, name(begun(text)), pids.length > 0 && ` (${theSame(pids)})`);
  const list = element("ul", {}, ...told.map(line));
  return element("details", { class: "rejected" }, element("summary", {}, summary), list);
}

/** A sentence begins with a capital. */
function begun(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
