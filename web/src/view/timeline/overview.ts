/** The whole run in one strip: how busy the GIL was. Dragging on it selects a time. */

import { colours } from "../colours";
import { wholeOf, type Context } from "../context";
import { element } from "../dom";
import { listen } from "./input";
import { panned, zoomed } from "./moves";

const HEIGHT = 56;

/** The strip. */
export class Overview {
  /** What goes into the page. */
  readonly element: HTMLElement;
  readonly #context: Context;
  readonly #canvas = element("canvas", { "aria-hidden": "true" });
  #isScheduled = false;

  constructor(context: Context) {
    this.#context = context;
    this.element = element("div", { class: "overview" }, this.#canvas);
    const { store, summary } = context;
    const whole = wholeOf(summary);
    const at = (x: number): number =>
      Math.min(Math.max(x / this.element.clientWidth, 0), 1) * whole.to;
    listen(
      this.element,
      () => 0,
      () => true,
      {
        pan: () => undefined,
        zoom: (x, factor) => {
          const share = (at(x) - store.now.view.from) / (store.now.view.to - store.now.view.from);
          const around = Math.min(Math.max(share, 0), 1);
          store.set({ view: zoomed(store.now.view, whole, factor, around, summary.unit_ns) });
        },
        select: (one, other) => {
          const from = Math.floor(at(Math.min(one, other)));
          const to = Math.ceil(at(Math.max(one, other)));
          if (to > from) store.set({ selection: { from, to } });
        },
        pick: (x) => {
          const { view } = store.now;
          const middle = (view.from + view.to) / 2;
          store.set({ view: panned(view, whole, (at(x) - middle) / (view.to - view.from)) });
        },
        hover: () => undefined,
      },
    );
    new ResizeObserver(() => {
      this.draw();
    }).observe(this.element);
    store.onChange(() => {
      this.#schedule();
    });
  }

  /** Draws with the next frame. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.draw();
    });
  }

  /** Draws it. */
  draw(): void {
    const { store, summary } = this.#context;
    const width = this.element.clientWidth;
    const busy = summary.gils[store.now.gil]?.busy;
    const context = this.#canvas.getContext("2d");
    if (!context || !width) return;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const pixels = Math.round(width * density);
    if (this.#canvas.width !== pixels) {
      this.#canvas.width = pixels;
      this.#canvas.height = HEIGHT * density;
    }
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const palette = colours();
    context.fillStyle = palette.band;
    context.fillRect(0, 0, width, HEIGHT);
    // Whole pixels, so that there are no seams between bars.
    const x = (units: number): number =>
      Math.round((units / wholeOf(summary).to) * width * density) / density;
    busy?.held.forEach((held, bucket) => {
      const left = x(bucket * busy.width);
      const span = x((bucket + 1) * busy.width) - left;
      const bar = (share: number, colour: string): void => {
        const high = Math.min(share, 1) * (HEIGHT - 6);
        context.fillStyle = colour;
        context.fillRect(left, HEIGHT - high, span, high);
      };
      bar(held / busy.width, palette.holders[0] ?? palette.ink);
      bar((busy.contended[bucket] ?? 0) / busy.width, palette.wait);
    });
    const { view, selection } = store.now;
    const shade = (from: number, to: number): void => {
      if (to > from) context.fillRect(from, 0, to - from, HEIGHT);
    };
    context.fillStyle = palette.paper;
    context.globalAlpha = 0.6;
    const shown = selection ?? view;
    shade(0, x(shown.from));
    shade(x(shown.to), width);
    context.globalAlpha = 1;
    context.strokeStyle = palette.ink;
    context.lineWidth = 1.5;
    const left = x(view.from);
    context.strokeRect(left + 1, 1, Math.max(x(view.to) - left - 2, 2), HEIGHT - 2);
    if (selection) {
      context.fillStyle = palette.select;
      for (const edge of [selection.from, selection.to])
        context.fillRect(x(edge) - 1, 0, 2, HEIGHT);
    }
  }
}
