/** How busy the GIL was over the whole run: a bar, and the line that `ungil report` prints. */

import { shared, type Figures } from "../model/figures";
import type { ProcessReport } from "../model/report";
import { digits, duration, rate, share } from "../units/numbers";
import { element, replace } from "./dom";

/** The bar: contended, held and free parts of the time. */
export function busyBar(held: number, contended: number, span: number): HTMLElement {
  const part = (kind: string, value: number): HTMLElement => {
    const made = element("span", { class: kind });
    made.style.flexGrow = String(Math.max(value, 0));
    return made;
  };
  return element(
    "div",
    {
      class: "busy-bar",
      role: "img",
      "aria-label": `The GIL was held ${share(held, span)} of the time, contended ${share(contended, span)}`,
    },
    part("contended", contended),
    part("held", held - contended),
    part("free", Math.max(span - held, 0)),
  );
}

/** Fills `place` with the bar and the numbers of `figures`. */
export function showBusy(
  place: HTMLElement,
  figures: Figures,
  process: ProcessReport | null,
): void {
  const alone = figures.startup;
  const { span, held, isShorter } = shared(figures);
  const wanting = figures.wanting * figures.span - figures.startupHeld;
  const facts: [string, string][] = [
    ["held", share(held, span)],
    ["contended", share(figures.contended, span)],
    ["waited, all threads", duration(figures.waited)],
    ["handoffs/s", known(figures.handoffs, rate(figures.handoffs, span))],
    ["forced/s", rate(figures.forced, span)],
    ["threads wanted to run, and one could", span > 0 ? digits(Math.max(wanting, 0) / span) : "0"],
  ];
  const interval = process?.switch_interval_ms;
  if (interval) {
    const policy = process?.policy ?? "stock";
    const turn = policy === "stock" ? "switch interval" : `policy ${policy}, quantum`;
    facts.push([turn, `${Number(interval.toPrecision(3))}ms`]);
  }
  const list = element("dl", { class: "facts" });
  for (const [term, value] of facts) {
    list.append(element("div", {}, element("dt", {}, term), element("dd", {}, value)));
  }
  const left =
    isShorter &&
    element(
      "p",
      { class: "quiet" },
      `Without the first ${duration(alone)}, when there was one thread, which held it for ` +
        share(figures.startupHeld, alone),
    );
  const rough =
    figures.source === "rough" &&
    element(
      "p",
      { class: "quiet" },
      "This page has no room for every hold of this time. Its numbers cover whole " +
        "summed intervals, and a dash is an unknown number.",
    );
  replace(place, busyBar(held, figures.contended, span), list, rough, left);
}

/** A text, or a dash for a number that is not known. */
export function known(value: number, text: string): string {
  return Number.isNaN(value) ? "–" : text;
}
