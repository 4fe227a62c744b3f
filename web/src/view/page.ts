/** Puts the parts of the page together, and keeps them at what the reader looks at. */

import type { Summary } from "../format/summary";
import type { Range } from "../model/range";
import type { FullReport } from "../model/report";
import type { Found } from "../model/search";
import { Client } from "../worker/client";
import { adviceSection } from "./advice";
import { busyBar } from "./busy";
import { forgetColours } from "./colours";
import { wholeOf, type Context } from "./context";
import { element, replace } from "./dom";
import { Findings, title } from "./findings";
import { offerHooks } from "./hooks";
import { help, listenToKeys } from "./keyboard";
import { readLink, writeLink } from "./link";
import { Measured } from "./measured";
import { footer, notes } from "./notes";
import { Picking } from "./picking";
import { gilChoice, processTable } from "./processes";
import { Rest } from "./rest";
import { Scope } from "./scope";
import { Search } from "./search";
import { Sections } from "./sections";
import { shownGil } from "./shown_gil";
import { Store, type State } from "./state";
import { kept } from "./timeline/moves";
import { Overview } from "./timeline/overview";
import { Timeline } from "./timeline/timeline";
import { legend, toolbar } from "./timeline/toolbar";
import { inWords } from "./timeline/words";
import { WaitsAtLocks } from "./waits_at_locks";
import { showWorst } from "./worst";

/** The page of one summary. */
export class Page {
  readonly #context: Context;
  readonly #whole: Range;
  readonly #timeline: Timeline;
  readonly #overview: Overview;
  readonly #sections: Sections;
  readonly #findings: Findings;
  readonly #measured: Measured;
  readonly #rest: Rest;
  readonly #picking: Picking;
  readonly #search: Search;
  readonly #scope: Scope;
  readonly #dialog = help();
  readonly #words = element("p", { id: "timeline-words", class: "unseen", "aria-live": "polite" });
  readonly #worst = element("p", { class: "worst" });
  readonly #locks: WaitsAtLocks;
  #asked: Promise<FullReport> | null = null;
  #shownGil = -1;
  #showing: Promise<void> = Promise.resolve();

  /** Builds the first screen into `place`. */
  constructor(summary: Summary, place: HTMLElement) {
    const whole = wholeOf(summary);
    this.#whole = whole;
    const store = new Store({ ...this.#linked(summary), picked: null, lane: null });
    const client = new Client(summary);
    const context: Context = { summary, client, store, report: null, gil: null };
    this.#context = context;
    this.#timeline = new Timeline(context, (lane, range) => {
      void this.#picking.pick(lane, range);
    });
    this.#picking = new Picking(context, whole, this.#timeline);
    this.#overview = new Overview(context);
    this.#sections = new Sections(context, {
      lane: (lane) => {
        store.set({ lane });
        this.#picking.toTimeline();
      },
      hold: (hold) => {
        if (hold.lane === null) return;
        const from = Math.floor(hold.begin / summary.unit_ns);
        const range = { from, to: from + hold.length / summary.unit_ns };
        void this.#picking.pick(hold.lane, range, true);
      },
    });
    this.#findings = new Findings(summary, store);
    this.#locks = new WaitsAtLocks(context);
    this.#rest = new Rest(
      store,
      () => {
        client.pauseNumbers(true);
      },
      () => {
        client.pauseNumbers(false);
        history.replaceState(null, "", writeLink(store.now, whole));
      },
    );
    this.#measured = new Measured(
      context,
      this.#rest,
      this.#sections,
      this.#findings,
      (figures) => {
        this.#words.textContent = inWords(this.#scope.text, figures);
      },
    );
    this.#search = new Search(context, (found) => {
      void this.#goTo(found);
    });
    this.#scope = new Scope(context, whole, this.#search.element);
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
    void this.#wholeReport().then((report) => this.#locks.update(report));
    if (!summary.gils.length) return;
    await this.#showGil(store.now.gil);
    const linked = readLink(location.hash).pick;
    if (linked) void this.#picking.pick(linked.lane, { from: linked.at, to: linked.at + 1 });
    void this.#wholeReport().then((report) => {
      this.#context.report = report;
      this.#measured.update();
    });
  }

  /** Puts `window.ungil` in place. */
  offerHooks(ready: Promise<void>): ReturnType<typeof offerHooks> {
    const unchanged = (): Promise<void> => this.#rest.unchanged();
    return offerHooks(this.#context, ready, unchanged, async (gil, range) => {
      if (gil !== this.#context.store.now.gil) this.#context.store.set({ gil, picked: null });
      await this.#showing;
      this.#timeline.showRange(range);
      return this.#timeline;
    });
  }

  #build(place: HTMLElement, summary: Summary): void {
    const { store } = this.#context;
    const gil = summary.gils[store.now.gil];
    if (gil) replace(this.#sections.busy, busyBar(gil.busy_held_s, gil.contended_s, gil.busy_s));
    const isEmpty = !summary.gils.length;
    place.append(
      element("header", {}, title(summary)),
      element(
        "main",
        {},
        this.#findings.element,
        adviceSection(summary),
        this.#locks.parks,
        !isEmpty && this.#scope.element,
        !isEmpty &&
          element(
            "section",
            { "aria-labelledby": "busy" },
            element("h2", { id: "busy" }, "How busy the GIL was"),
            gilChoice(summary, store),
            this.#sections.busy,
            this.#worst,
          ),
        !isEmpty && this.#timelineSection(),
        !isEmpty && this.#sections.below,
        this.#locks.locks,
        processTable(summary, store),
        notes(summary),
      ),
      footer(summary),
      this.#dialog,
    );
    showWorst(this.#worst, this.#context, this.#whole);
  }

  #timelineSection(): HTMLElement {
    const { store } = this.#context;
    return element(
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
      this.#picking.said,
      this.#words,
      this.#picking.detail,
    );
  }

  /** The report, which is asked for once. */
  #wholeReport(): Promise<FullReport> {
    return (this.#asked ??= this.#context.client.ask("report", {}));
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
      showWorst(this.#worst, this.#context, this.#whole);
    } else if (now.selection !== before.selection && this.#context.report) {
      this.#measured.update();
      void this.#locks.update(this.#context.report);
    }
    if (now.picked !== before.picked) this.#picking.show(now.picked);
    if (now.selection !== before.selection) this.#scope.show();
  }

  async #goTo(found: Found): Promise<void> {
    const { store } = this.#context;
    if (found.gil !== store.now.gil) {
      store.set({ gil: found.gil, selection: null, picked: null });
      await this.#showing;
    }
    await this.#picking.goTo(found);
  }

  /** What the address of the page says of what is to be shown. */
  #linked(summary: Summary): Pick<State, "gil" | "view" | "selection"> {
    const linked = readLink(location.hash);
    return {
      gil: linked.gil < summary.gils.length ? linked.gil : 0,
      view: linked.view ? kept(linked.view, this.#whole) : this.#whole,
      selection: linked.selection && clipped(linked.selection, this.#whole),
    };
  }

  #listen(): void {
    const { store, summary } = this.#context;
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
        void this.#picking.step(by);
      },
      fit: this.#picking.fit,
      whole: () => {
        store.set({ view: this.#whole });
      },
      select: this.#picking.select,
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
      store.set(this.#linked(summary));
    });
  }
}

/** The part of `range` that lies inside, null if none does. */
function clipped(range: Range, whole: Range): Range | null {
  const from = Math.max(range.from, whole.from);
  const to = Math.min(range.to, whole.to);
  return to > from ? { from, to } : null;
}
