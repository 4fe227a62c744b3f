/** Puts the parts of the page together, and keeps them at what the reader looks at. */

import type { Summary } from "../format/summary";
import type { Explanation } from "../model/explanation";
import type { Range } from "../model/range";
import type { Found } from "../model/search";
import { printable } from "../units/names";
import { duration } from "../units/numbers";
import { Client } from "../worker/client";
import { forgetColours } from "./colours";
import { clockOf, momentOf, wholeOf, type Context } from "./context";
import { element, replace } from "./dom";
import { busyBar } from "./busy";
import { Findings, title, worstSentence, worstTenSeconds } from "./findings";
import { offerHooks } from "./hooks";
import { help, listenToKeys } from "./keyboard";
import { readLink, writeLink } from "./link";
import { Measured } from "./measured";
import { footer, notes } from "./notes";
import { gilChoice, processTable } from "./processes";
import { Search } from "./search";
import { Sections } from "./sections";
import { shownGil } from "./shown_gil";
import { Store, type State } from "./state";
import { legend, toolbar } from "./timeline/toolbar";
import { showDetail } from "./timeline/detail";
import { around, kept } from "./timeline/moves";
import { Overview } from "./timeline/overview";
import { Timeline } from "./timeline/timeline";
import { inWords } from "./timeline/words";

/** How long the view must rest before the link is changed, in ms. */
const LINK_AFTER = 250;
/** How long a remark stays, in ms. */
const SAID_FOR = 4000;

/** The page of one summary. */
export class Page {
  readonly #context: Context;
  readonly #whole: Range;
  readonly #timeline: Timeline;
  readonly #overview: Overview;
  readonly #sections: Sections;
  readonly #findings: Findings;
  readonly #measured: Measured;
  readonly #search: Search;
  readonly #dialog = help();
  readonly #detail = element("div", { class: "detail", "aria-live": "polite" });
  readonly #scope = element("p", { role: "status" });
  readonly #words = element("p", { id: "timeline-words", class: "unseen", "aria-live": "polite" });
  readonly #clear = element("button", { type: "button" }, "Whole run");
  readonly #worst = element("p", { class: "worst" });
  readonly #said = element("p", { class: "said quiet", role: "status" });
  #sayTimer = 0;
  #shownGil = -1;
  #showing: Promise<void> = Promise.resolve();
  #linkTimer = 0;

  /** Builds the first screen into `place`. */
  constructor(summary: Summary, place: HTMLElement) {
    const whole = wholeOf(summary);
    this.#whole = whole;
    const linked = readLink(location.hash);
    const store = new Store({
      gil: linked.gil < summary.gils.length ? linked.gil : 0,
      view: linked.view ? kept(linked.view, whole) : whole,
      selection: linked.selection && clipped(linked.selection, whole),
      picked: null,
      lane: null,
    });
    const context: Context = {
      summary,
      client: new Client(summary),
      store,
      report: null,
      gil: null,
    };
    this.#context = context;
    this.#timeline = new Timeline(context, (lane, range) => {
      void this.#pick(lane, range);
    });
    this.#overview = new Overview(context);
    this.#sections = new Sections(context, {
      lane: (lane) => {
        store.set({ lane });
        this.#toTimeline();
      },
      hold: (hold) => {
        if (hold.lane === null) return;
        const from = Math.floor(hold.begin / summary.unit_ns);
        const range = { from, to: from + hold.length / summary.unit_ns };
        void this.#pick(hold.lane, range, true);
      },
    });
    this.#findings = new Findings(summary, store);
    this.#measured = new Measured(context, this.#sections, this.#findings, (figures) => {
      this.#words.textContent = inWords(this.#scopeText(), figures);
    });
    this.#search = new Search(context, (found) => {
      void this.#goTo(found);
    });
    this.#build(place, summary);
    store.onChange((now, before) => {
      this.#changed(now, before);
    });
    this.#listen();
  }

  /** Loads what the first screen lacks; resolves when the timeline has been drawn. */
  async load(): Promise<void> {
    const { client, store, summary } = this.#context;
    void client.sendBlocks(document);
    if (!summary.gils.length) return;
    await this.#showGil(store.now.gil);
    const linked = readLink(location.hash).pick;
    if (linked) void this.#pick(linked.lane, { from: linked.at, to: linked.at + 1 });
    void client.ask("report", {}).then((report) => {
      this.#context.report = report;
      this.#measured.update();
    });
  }

  /** Puts `window.ungil` in place. */
  offerHooks(ready: Promise<void>): ReturnType<typeof offerHooks> {
    return offerHooks(this.#context, ready, async (gil, range) => {
      if (gil !== this.#context.store.now.gil) this.#context.store.set({ gil, picked: null });
      await this.#showing;
      this.#timeline.showRange(range);
      await this.#timeline.settled();
    });
  }

  #build(place: HTMLElement, summary: Summary): void {
    const { store } = this.#context;
    this.#clear.addEventListener("click", () => {
      store.set({ selection: null });
    });
    const gil = summary.gils[store.now.gil];
    const seconds = (summary.end * summary.unit_ns) / 1e9;
    if (gil) replace(this.#sections.busy, busyBar(gil.held_s, gil.contended_s, seconds));
    const isEmpty = !summary.gils.length;
    const timeline = element(
      "section",
      { "aria-labelledby": "timeline" },
      element("h2", { id: "timeline" }, "Timeline"),
      toolbar({
        zoom: (factor) => {
          this.#timeline.zoom(factor);
        },
        whole: () => {
          store.set({ view: this.#whole });
        },
        select: () => {
          const { from, to } = store.now.view;
          store.set({ selection: { from: Math.floor(from), to: Math.ceil(to) } });
        },
        help: () => {
          this.#dialog.showModal();
        },
      }),
      this.#overview.element,
      this.#timeline.element,
      legend(),
      this.#said,
      this.#words,
      this.#detail,
    );
    this.#detail.hidden = true;
    place.append(
      element("header", {}, title(summary)),
      element(
        "main",
        {},
        this.#findings.element,
        !isEmpty &&
          element("div", { class: "scope" }, this.#scope, this.#clear, this.#search.element),
        !isEmpty &&
          element(
            "section",
            { "aria-labelledby": "busy" },
            element("h2", { id: "busy" }, "How busy the GIL was"),
            gilChoice(summary, store),
            this.#sections.busy,
            this.#worst,
          ),
        !isEmpty && timeline,
        !isEmpty && this.#sections.below,
        processTable(summary, store),
        notes(summary),
      ),
      footer(summary),
      this.#dialog,
    );
    this.#showScope();
    this.#showWorst();
  }

  async #showGil(index: number): Promise<void> {
    this.#shownGil = index;
    const { store } = this.#context;
    this.#showing = (async () => {
      const gil = await shownGil(this.#context, index);
      if (this.#shownGil !== index) return;
      this.#context.gil = gil;
      await this.#timeline.show(gil);
    })();
    await this.#showing;
    if (this.#context.report && store.now.gil === index) this.#measured.update();
  }

  #changed(now: State, before: State): void {
    if (now.gil !== before.gil) {
      void this.#showGil(now.gil);
      this.#showWorst();
    } else if (now.selection !== before.selection && this.#context.report) {
      this.#measured.update();
    }
    if (now.picked !== before.picked) this.#showDetail(now.picked);
    this.#showScope();
    window.clearTimeout(this.#linkTimer);
    this.#linkTimer = window.setTimeout(() => {
      history.replaceState(null, "", writeLink(this.#context.store.now, this.#whole));
    }, LINK_AFTER);
  }

  #scopeText(): string {
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

  #showScope(): void {
    const text = this.#scopeText();
    if (this.#scope.textContent !== text) this.#scope.textContent = text;
    const isSelected = this.#context.store.now.selection !== null;
    this.#clear.hidden = !isSelected;
    this.#scope.parentElement?.classList.toggle("selected", isSelected);
  }

  #showWorst(): void {
    const { store, summary } = this.#context;
    const worst = worstTenSeconds(summary, store.now.gil);
    this.#worst.hidden = !worst;
    if (!worst) return;
    const range = { from: Math.floor(worst.from), to: Math.ceil(worst.to) };
    const at = [clockOf(summary, range.from), momentOf(summary, range.from, 1e8)];
    const show = (): void => {
      store.set({ selection: range, view: around(range, this.#whole, summary.unit_ns) });
    };
    replace(
      this.#worst,
      `${worstSentence(worst.waited, summary.unit_ns, at.filter(Boolean).join(", "))} `,
      element("button", { type: "button", onclick: show }, "Look at them"),
    );
  }

  async #pick(lane: number, range: Range, isShown = false): Promise<void> {
    const { client, store } = this.#context;
    const picked = await client.ask("explain", { gil: store.now.gil, lane, ...range });
    if (!picked) this.#say(`${this.#context.gil?.labels[lane] ?? "It"} was idle then`);
    store.set({ picked, lane, ...(isShown && picked ? { view: this.#around(picked) } : {}) });
    if (isShown) this.#toTimeline();
  }

  /** Says something that needs no answer, beside the toolbar. */
  #say(text: string): void {
    this.#said.textContent = printable(text);
    window.clearTimeout(this.#sayTimer);
    this.#sayTimer = window.setTimeout(() => (this.#said.textContent = ""), SAID_FOR);
  }

  async #step(step: 1 | -1): Promise<void> {
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

  async #goTo(found: Found): Promise<void> {
    const { store } = this.#context;
    if (found.gil !== store.now.gil) {
      store.set({ gil: found.gil, selection: null, picked: null });
      await this.#showing;
    }
    if (found.from !== null && found.to !== null) {
      await this.#pick(found.lane, { from: found.from, to: found.to }, true);
    } else {
      store.set({ lane: found.lane });
      this.#toTimeline();
    }
  }

  #around({ begin, end }: Explanation): Range {
    const length = end - begin;
    return around(
      { from: begin - length, to: end + length },
      this.#whole,
      this.#context.summary.unit_ns,
    );
  }

  #toTimeline(): void {
    document.getElementById("timeline")?.scrollIntoView();
    this.#timeline.element.focus({ preventScroll: true });
  }

  #showDetail(picked: Explanation | null): void {
    showDetail(this.#detail, picked, this.#context, {
      pick: (lane, from, to) => {
        void this.#pick(lane, { from, to });
      },
      step: (by) => {
        void this.#step(by);
      },
      select: this.#select,
      zoom: this.#fit,
      close: () => {
        this.#context.store.set({ picked: null });
      },
    });
  }

  readonly #select = (): void => {
    const { picked } = this.#context.store.now;
    if (picked && picked.end > picked.begin) {
      this.#context.store.set({ selection: { from: picked.begin, to: picked.end } });
    }
  };

  readonly #fit = (): void => {
    const { store, summary } = this.#context;
    const { picked, selection } = store.now;
    const range = picked ? { from: picked.begin, to: picked.end } : selection;
    if (range) store.set({ view: around(range, this.#whole, summary.unit_ns) });
  };

  #listen(): void {
    const { store } = this.#context;
    listenToKeys(this.#timeline.element, this.#dialog, {
      zoom: (factor) => {
        this.#timeline.zoom(factor);
      },
      pan: (share) => {
        this.#timeline.pan(share);
      },
      lane: (by) => {
        this.#timeline.moveLane(by);
      },
      pick: () => {
        this.#timeline.pickInView();
      },
      step: (by) => {
        void this.#step(by);
      },
      fit: this.#fit,
      whole: () => {
        store.set({ view: this.#whole });
      },
      select: this.#select,
      search: () => {
        this.#search.focus();
      },
      escape: () => {
        if (this.#search.close()) return;
        if (store.now.picked) store.set({ picked: null });
        else store.set({ selection: null });
      },
    });
    const redraw = (): void => {
      forgetColours();
      this.#timeline.drawNow();
      this.#overview.draw();
      this.#sections.redraw();
    };
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(query).addEventListener("change", redraw);
    }
    window.addEventListener("hashchange", () => {
      const linked = readLink(location.hash);
      const gil = linked.gil < this.#context.summary.gils.length ? linked.gil : 0;
      const view = linked.view ? kept(linked.view, this.#whole) : this.#whole;
      store.set({
        gil,
        view,
        selection: linked.selection && clipped(linked.selection, this.#whole),
      });
    });
  }
}

/** The part of `range` that lies inside, null if none does. */
function clipped(range: Range, whole: Range): Range | null {
  const from = Math.max(range.from, whole.from);
  const to = Math.min(range.to, whole.to);
  return to > from ? { from, to } : null;
}
