/** Holds and waits that the reader picks: each is explained beside the timeline. */

import type { Explanation } from "../model/explanation";
import type { Range } from "../model/range";
import { missingIn } from "../model/rough";
import type { Found } from "../model/search";
import { printable } from "../units/names";
import type { Context } from "./context";
import { element } from "./dom";
import { showDetail } from "./timeline/detail";
import { around, kept } from "./timeline/moves";
import type { Timeline } from "./timeline/timeline";

/** How long a remark stays, in ms. */
const SAID_FOR = 4000;

/** What is picked, and the ways to pick. */
export class Picking {
  /** What is known of the picked hold or wait. */
  readonly detail = element("div", { class: "detail", "aria-live": "polite" });
  /** A remark, where there is nothing to explain. */
  readonly said = element("p", { class: "said quiet", role: "status" });
  readonly #context: Context;
  readonly #whole: Range;
  readonly #timeline: Timeline;
  #sayTimer = 0;

  constructor(context: Context, whole: Range, timeline: Timeline) {
    this.#context = context;
    this.#whole = whole;
    this.#timeline = timeline;
    this.detail.hidden = true;
  }

  /** Picks the longest thing that a lane did in `range`, and shows it if it may be out of view. */
  async pick(lane: number, range: Range, isShown = false): Promise<void> {
    const { client, store, gil, summary } = this.#context;
    const picked = await client.ask("explain", { gil: store.now.gil, lane, ...range });
    if (!picked) {
      const ref = summary.gils[store.now.gil];
      const isMissing = ref !== undefined && missingIn(ref, range).length > 0;
      const idle = `${gil?.labels[lane] ?? "It"} was idle then`;
      this.#say(isMissing ? "This page has no individual holds and waits of that time" : idle);
    }
    store.set({ picked, lane, ...(isShown && picked ? { view: this.#around(picked) } : {}) });
    if (isShown) this.toTimeline();
  }

  /** Picks what the lane did next, or before. */
  async step(step: 1 | -1): Promise<void> {
    const { client, store } = this.#context;
    const { picked, lane, gil, view } = store.now;
    if (lane === null) return;
    const at = picked ? (step > 0 ? picked.end : picked.begin) : view.from;
    const next = await client.ask("neighbour", { gil, lane, at, step });
    if (!next) {
      this.#say(step > 0 ? "That was its last" : "That was its first");
      return;
    }
    const isInView = next.begin >= view.from && next.end <= view.to;
    const length = view.to - view.from;
    const middle = (next.begin + next.end) / 2;
    const moved = kept({ from: middle - length / 2, to: middle + length / 2 }, this.#whole);
    store.set({ picked: next, view: isInView ? view : moved });
  }

  /** Shows what was found; its GIL is shown already. */
  async goTo(found: Found): Promise<void> {
    if (found.from !== null && found.to !== null) {
      await this.pick(found.lane, { from: found.from, to: found.to }, true);
    } else {
      this.#context.store.set({ lane: found.lane });
      this.toTimeline();
    }
  }

  /** Brings the timeline into sight, and the keyboard to it. */
  toTimeline(): void {
    document.getElementById("timeline")?.scrollIntoView();
    this.#timeline.element.focus({ preventScroll: true });
  }

  /** Shows what is known of `picked`. */
  show(picked: Explanation | null): void {
    showDetail(this.detail, picked, this.#context, {
      pick: (lane, from, to) => {
        void this.pick(lane, { from, to });
      },
      step: (by) => {
        void this.step(by);
      },
      select: this.select,
      zoom: this.fit,
      close: () => {
        this.#context.store.set({ picked: null });
      },
    });
  }

  /** Selects the time of what is picked. */
  readonly select = (): void => {
    const { picked } = this.#context.store.now;
    if (picked && picked.end > picked.begin) {
      this.#context.store.set({ selection: { from: picked.begin, to: picked.end } });
    }
  };

  /** Zooms to what is picked, or selected. */
  readonly fit = (): void => {
    const { store, summary } = this.#context;
    const { picked, selection } = store.now;
    const range = picked ? { from: picked.begin, to: picked.end } : selection;
    if (range) store.set({ view: around(range, this.#whole, summary.unit_ns) });
  };

  /** Says something that needs no answer, beside the toolbar. */
  #say(text: string): void {
    this.said.textContent = printable(text);
    window.clearTimeout(this.#sayTimer);
    this.#sayTimer = window.setTimeout(() => (this.said.textContent = ""), SAID_FOR);
  }

  #around({ begin, end }: Explanation): Range {
    const length = end - begin;
    const range = { from: begin - length, to: end + length };
    return around(range, this.#whole, this.#context.summary.unit_ns);
  }
}
