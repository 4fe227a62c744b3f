/** The buttons above the timeline, and what its colours and marks mean. */

import { element } from "../dom";

/** What the buttons do. */
export interface ToolbarActions {
  zoom(factor: number): void;
  whole(): void;
  select(): void;
  help(): void;
}

const STEP = 2;

/** The buttons. */
export function toolbar(actions: ToolbarActions): HTMLElement {
  const button = (text: string, label: string, act: () => void): HTMLElement =>
    element("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
  return element(
    "div",
    { class: "toolbar", role: "toolbar", "aria-label": "Timeline" },
    button("+", "Zoom in (W)", () => {
      actions.zoom(STEP);
    }),
    button("−", "Zoom out (S)", () => {
      actions.zoom(1 / STEP);
    }),
    button("Show all", "Show all (0)", actions.whole),
    button("Numbers of this view", "Numbers of this view: select its time (M)", actions.select),
    button("Keys ?", "Keys", actions.help),
  );
}

/** What is drawn how. */
export function legend(): HTMLElement {
  const entry = (kind: string, text: string): HTMLElement =>
    element("span", {}, element("i", { class: `key ${kind}`, "aria-hidden": "true" }), text);
  return element(
    "p",
    { class: "legend" },
    entry("hold", "holds the GIL (one colour for each thread)"),
    entry("waits", "waits for it"),
    entry("idle", "idle"),
    entry("not-run", "descheduled: holds the GIL without a CPU"),
    entry("forced", "forced release"),
    entry("asked", "drop request"),
  );
}
