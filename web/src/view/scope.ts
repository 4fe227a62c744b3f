/** What the numbers of the page are about: the whole run, or the time that the reader has selected. */

import type { Range } from "../model/range";
import { duration } from "../units/numbers";
import { clockOf, momentOf, type Context } from "./context";
import { element } from "./dom";

/** The line that stays in sight. */
export class Scope {
  /** What goes into the page. */
  readonly element: HTMLElement;
  readonly #context: Context;
  readonly #whole: Range;
  readonly #said = element("p", { role: "status" });
  readonly #clear = element("button", { type: "button" }, "Whole run");

  /** `beside` stands at the end of the line. */
  constructor(context: Context, whole: Range, beside: HTMLElement) {
    this.#context = context;
    this.#whole = whole;
    this.element = element("div", { class: "scope" }, this.#said, this.#clear, beside);
    this.#clear.addEventListener("click", () => {
      context.store.set({ selection: null });
    });
    this.show();
  }

  /** The line. */
  get text(): string {
    const { store, summary } = this.#context;
    const { selection } = store.now;
    if (!selection) {
      const length = duration((this.#whole.to - this.#whole.from) * summary.unit_ns);
      return `Numbers are of the whole ${summary.report.part ? "part" : "run"}, ${length}`;
    }
    const ns = (selection.to - selection.from) * summary.unit_ns;
    const [from, to] = [selection.from, selection.to].map((at) => momentOf(summary, at, ns / 1000));
    const at = clockOf(summary, selection.from);
    return `Numbers are of ${from} to ${to}, ${duration(ns)}${at ? `, ${at}` : ""}`;
  }

  /** Says what is selected now. */
  show(): void {
    const { text } = this;
    if (this.#said.textContent !== text) this.#said.textContent = text;
    const isSelected = this.#context.store.now.selection !== null;
    this.#clear.hidden = !isSelected;
    this.element.classList.toggle("selected", isSelected);
  }
}
