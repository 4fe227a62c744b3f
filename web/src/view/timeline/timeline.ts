/** The timeline: a lane for each thread below that of the GIL. */

import type { Range } from "../../model/range";
import { emptyRaster, type Layout } from "../../model/raster";
import { colours, HOLDER_COLOURS } from "../colours";
import { momentOf, wholeOf, type Context, type ShownGil } from "../context";
import { element } from "../dom";
import { TimelineData, type Drawn } from "./data";
import { draw } from "./draw";
import { listen } from "./input";
import { Labels } from "./labels";
import { HEAD, LANE, LANES_SHOWN, RULER } from "./measures";
import { kept, panned, zoomed } from "./moves";

/** Lanes are drawn a little beyond the edges, so that scrolling shows no blanks. */
const SPARE_LANES = 1;

/** The picture, its gestures, and what it shows. */
export class Timeline {
  /** What goes into the page. */
  readonly element: HTMLElement;
  readonly #context: Context;
  readonly #onPick: (lane: number, range: Range) => void;
  readonly #canvas = element("canvas", { "aria-hidden": "true" });
  readonly #layer = document.createElement("canvas");
  readonly #scroller = element("div", {
    class: "lanes",
    tabindex: 0,
    role: "group",
    "aria-label": "Threads",
  });
  /** Where the pointer is, from the left edge and from above. */
  #pointer: [number | null, number] = [null, 0];
  readonly #cursor = element("div", { class: "cursor", "aria-hidden": "true" });
  readonly #labels = new Labels();
  #gil: ShownGil | null = null;
  #data: TimelineData | null = null;
  #placeOf = new Int32Array();
  #isScheduled = false;
  #drawn: (() => void)[] = [];
  #settled: (() => void)[] = [];

  /** `onPick` is called with a clicked lane and the time that the click may mean. */
  constructor(context: Context, onPick: (lane: number, range: Range) => void) {
    this.#context = context;
    this.#onPick = onPick;
    this.#cursor.hidden = true;
    this.#scroller.append(this.#labels.element);
    this.element = element(
      "div",
      {
        class: "timeline",
        tabindex: 0,
        role: "application",
        "aria-label": "Timeline of the threads; press question mark for its keys",
        "aria-describedby": "timeline-words",
      },
      this.#canvas,
      element("div", { class: "gil-label" }, "who holds it"),
      this.#scroller,
      this.#cursor,
    );
    this.#listen();
    new ResizeObserver(() => {
      this.schedule();
    }).observe(this.element);
    context.store.onChange((now, before) => {
      // The pointer is at another moment then.
      if (now.view !== before.view) this.#hover(...this.#pointer);
      if (now.lane !== before.lane && now.lane !== null) this.#scrollTo(now.lane);
      this.schedule();
    });
  }

  /** Shows another GIL. */
  async show(gil: ShownGil): Promise<void> {
    const ref = this.#context.summary.gils[gil.index];
    if (!ref) return;
    this.#gil = gil;
    this.#data = new TimelineData(this.#context.client, gil.index, ref, () => {
      this.schedule();
    });
    this.#placeOf = new Int32Array(gil.labels.length).fill(-1);
    gil.order.forEach((lane, place) => (this.#placeOf[lane] = place));
    this.#labels.show(gil);
    const shown = Math.min(Math.max(gil.order.length, 1), LANES_SHOWN);
    this.element.style.height = `${HEAD + shown * LANE + 6}px`;
    this.schedule();
    await this.settled();
    void this.#data.fetchLevels().then(() => {
      this.schedule();
    });
  }

  /** Resolves when what is to be shown has been drawn, from what is there. */
  drawn(): Promise<void> {
    return new Promise((resolve) => {
      this.#drawn.push(resolve);
      this.schedule();
    });
  }

  /** Resolves when what is to be shown has been drawn from the best data. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#settled.push(resolve);
      this.schedule();
    });
  }

  /** Draws with the next frame. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.drawNow();
    });
  }

  /** Draws at once. */
  drawNow(): void {
    const width = this.#width();
    const height = this.element.clientHeight;
    if (!this.#gil || !this.#data || width <= 0) return;
    const drawn = this.#draw(this.#gil, this.#data, width, height);
    this.element.dataset["exact"] = String(drawn.isExact);
    for (const resolve of this.#drawn.splice(0)) resolve();
    if (!drawn.isFinal) return;
    for (const resolve of this.#settled.splice(0)) resolve();
  }

  #draw(gil: ShownGil, data: TimelineData, width: number, height: number): Drawn {
    const { store, summary } = this.#context;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const columns = Math.round(width * density);
    const [pixels, lines] = [Math.round(width * density), Math.round(height * density)];
    if (this.#canvas.width !== pixels || this.#canvas.height !== lines) {
      [this.#canvas.width, this.#canvas.height] = [pixels, lines];
      this.#canvas.style.width = `${width}px`;
      this.#canvas.style.height = `${height}px`;
    }
    const scrolled = this.#scroller.scrollTop;
    const first = Math.max(Math.floor(scrolled / LANE) - SPARE_LANES, 0);
    const last = Math.ceil((scrolled + height - HEAD) / LANE) + SPARE_LANES;
    const lanes = gil.order.slice(first, last);
    this.#labels.place(first, last, store.now.lane, store.now.picked);
    const rowOf = new Int32Array(gil.labels.length).fill(-1);
    lanes.forEach((lane, row) => (rowOf[lane] = row));
    const layout: Layout = {
      view: store.now.view,
      columns,
      rowOf,
      rows: lanes.length,
      colourOf: gil.colourOf,
      colours: HOLDER_COLOURS,
    };
    const raster = emptyRaster(layout);
    const drawn = data.draw(raster, layout);
    const context = this.#canvas.getContext("2d");
    if (!context) return drawn;
    context.setTransform(density, 0, 0, density, 0, 0);
    const { picked } = store.now;
    draw(
      context,
      {
        width,
        height,
        density,
        view: store.now.view,
        raster,
        places: lanes.map((_, row) => first + row),
        colourOf: lanes.map((lane) => gil.colourOf[lane] ?? 0),
        scrolled,
        selection: store.now.selection,
        picked: picked && {
          place: this.#placeOf[picked.lane] ?? -1,
          begin: picked.begin,
          end: picked.end,
          isWait: picked.kind === "wait",
        },
        cursor: store.now.lane === null ? null : (this.#placeOf[store.now.lane] ?? null),
        unitNs: summary.unit_ns,
        layer: this.#layer,
        momentOf: (units, stepNs) => momentOf(summary, units, stepNs),
      },
      colours(),
    );
    return drawn;
  }

  /** Moves the view by `share` of its length. */
  pan(share: number): void {
    const { store, summary } = this.#context;
    store.set({ view: panned(store.now.view, wholeOf(summary), share) });
  }

  /** Zooms by `factor` around the place at `share` of the width. */
  zoom(factor: number, share = 0.5): void {
    const { store, summary } = this.#context;
    const { view } = store.now;
    store.set({ view: zoomed(view, wholeOf(summary), factor, share, summary.unit_ns) });
  }

  /** Shows `view`, as far as it lies inside. */
  showRange(view: Range): void {
    this.#context.store.set({ view: kept(view, wholeOf(this.#context.summary)) });
  }

  /** The lane `by` places below the current one. */
  moveLane(by: number): void {
    const gil = this.#gil;
    if (!gil) return;
    const { lane } = this.#context.store.now;
    const place = lane === null ? -1 : (this.#placeOf[lane] ?? -1);
    const next = Math.min(Math.max(place + by, 0), gil.order.length - 1);
    this.#context.store.set({ lane: gil.order[next] ?? null });
  }

  /** The longest thing in view of the current lane. */
  pickInView(): void {
    const { lane, view } = this.#context.store.now;
    if (lane !== null) this.#onPick(lane, view);
  }

  #scrollTo(lane: number): void {
    const top = (this.#placeOf[lane] ?? 0) * LANE;
    const room = this.#scroller.clientHeight;
    if (top < this.#scroller.scrollTop) this.#scroller.scrollTop = top;
    else if (top + LANE > this.#scroller.scrollTop + room) {
      this.#scroller.scrollTop = top + LANE - room;
    }
  }

  #width(): number {
    return this.element.clientWidth - this.#gutter();
  }

  #gutter(): number {
    return this.#canvas.offsetLeft;
  }

  #at(x: number): number {
    const { view } = this.#context.store.now;
    return view.from + (x / this.#width()) * (view.to - view.from);
  }

  #listen(): void {
    this.#scroller.addEventListener("scroll", () => {
      this.drawNow();
    });
    const { store, summary } = this.#context;
    const whole = wholeOf(summary);
    listen(
      this.element,
      () => this.#gutter(),
      (y) => y < RULER,
      {
        pan: (by) => {
          this.pan(-by / this.#width());
        },
        zoom: (x, factor) => {
          this.zoom(factor, x / this.#width());
        },
        select: (one, other) => {
          const [from, to] = [this.#at(Math.min(one, other)), this.#at(Math.max(one, other))];
          const selection = {
            from: Math.max(Math.floor(from), whole.from),
            to: Math.min(Math.ceil(to), whole.to),
          };
          store.set({ selection: selection.to > selection.from ? selection : null });
        },
        pick: (x, y) => {
          this.element.focus({ preventScroll: true });
          this.#pick(x, y);
        },
        hover: (x, y) => {
          this.#hover(x, y);
        },
      },
    );
  }

  #pick(x: number, y: number): void {
    const place = Math.floor((y - HEAD + this.#scroller.scrollTop) / LANE);
    const lane = y < HEAD ? undefined : this.#gil?.order[place];
    if (lane === undefined) return;
    // What a pointer can hit: a pixel and a half around it.
    this.#onPick(lane, { from: Math.floor(this.#at(x - 1.5)), to: Math.ceil(this.#at(x + 1.5)) });
  }

  #hover(x: number | null, y: number): void {
    this.#pointer = [x, y];
    this.#cursor.hidden = x === null || y < 0;
    if (x === null) return;
    const { summary, store } = this.#context;
    const step = ((store.now.view.to - store.now.view.from) * summary.unit_ns) / this.#width();
    this.#cursor.style.transform = `translateX(${this.#gutter() + x}px)`;
    this.#cursor.textContent = momentOf(summary, this.#at(x), step);
    this.#cursor.classList.toggle("at-right", x > this.#width() - 110);
  }
}
