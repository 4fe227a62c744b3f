/** The sections below the timeline, and the bar above it: everything that numbers are shown in. */

import type { Figures, LongHoldFigures } from "../model/figures";
import type { Flame } from "../model/flame";
import type { Numbers } from "../model/numbers";
import { showBlame } from "./blame";
import { showBusy } from "./busy";
import type { Context, ShownGil } from "./context";
import { element, replace } from "./dom";
import { showFlame } from "./flame";
import { showHistograms } from "./histograms";
import { showLongHolds } from "./long_holds";
import { showThreads } from "./threads";

/** What a click on a number leads to. */
export interface SectionActions {
  lane(lane: number): void;
  hold(hold: LongHoldFigures): void;
}

/** Each section, and how it is filled. */
export class Sections {
  /** How busy the GIL was. */
  readonly busy = element("div", { class: "busy" });
  /** All that stands below the timeline. */
  readonly below: HTMLElement;
  readonly #threads = element("div");
  readonly #blame = element("div");
  readonly #histograms = element("div", { class: "charts" });
  readonly #holds = element("div");
  readonly #flame = element("div");
  readonly #byTime = element("input", { type: "checkbox", id: "by-time", checked: true });
  readonly #context: Context;
  readonly #actions: SectionActions;
  #redrawHistograms: () => void = () => undefined;

  constructor(context: Context, actions: SectionActions) {
    this.#context = context;
    this.#actions = actions;
    this.#byTime.addEventListener("change", () => {
      this.#redrawHistograms();
    });
    const byTime = element(
      "p",
      { class: "choice" },
      this.#byTime,
      element("label", { for: "by-time" }, "bars are summed time, not counts"),
    );
    this.below = element(
      "div",
      {},
      section("threads", "Threads", this.#threads),
      section("blame", "Who waited for whom", this.#blame),
      section("lengths", "How long waits, holds and gaps were", byTime, this.#histograms),
      section("flame", "What held the GIL while somebody waited", this.#flame),
      section("holds", "Longest holds", this.#holds),
    );
  }

  /** Shows the tables of `figures`. */
  showFigures(figures: Figures, gil: ShownGil): void {
    const ref = this.#context.summary.gils[gil.index];
    const process = this.#context.report?.processes[ref?.process ?? -1] ?? null;
    showBusy(this.busy, figures, process);
    showThreads(this.#threads, figures, gil, this.#actions.lane);
    showBlame(this.#blame, figures, gil);
    showLongHolds(this.#holds, figures, gil, this.#context, this.#actions.hold);
  }

  /** Shows what only the events tell. */
  showLengths(numbers: Numbers, gil: ShownGil): void {
    const interval = this.#context.summary.gils[gil.index]?.switch_interval_ms;
    this.#redrawHistograms = () => {
      showHistograms(
        this.#histograms,
        [
          {
            title: "Waits",
            noun: ["wait", "waits"],
            histogram: numbers.waitLengths,
            colour: "wait",
          },
          {
            title: "Holds",
            noun: ["hold", "holds"],
            histogram: numbers.holdLengths,
            colour: "hold",
          },
          {
            title: "Gaps, from a release to the next hold",
            noun: ["gap", "gaps"],
            histogram: numbers.gapLengths,
            colour: "gap",
          },
        ],
        {
          unitNs: this.#context.summary.unit_ns,
          switchIntervalUs: interval ? interval * 1000 : null,
          byTime: this.#byTime.checked,
        },
      );
    };
    this.#redrawHistograms();
  }

  /** Draws what is on canvases again, because colours have changed. */
  redraw(): void {
    this.#redrawHistograms();
  }

  /** Shows the flame graph; `waited` in ns is what it explains a part of. */
  showFlame(flame: Flame, waited: number): void {
    showFlame(this.#flame, flame, waited, this.#context.summary.unit_ns);
  }

  /** Says that numbers are on their way. */
  measuring(isMeasuring: boolean): void {
    this.below.classList.toggle("measuring", isMeasuring);
    this.below.setAttribute("aria-busy", String(isMeasuring));
  }

  /** Says in the place of numbers that depend on events why there are none. */
  failed(why: string): void {
    replace(this.#histograms, element("p", { class: "quiet" }, why));
  }
}

function section(id: string, heading: string, ...content: HTMLElement[]): HTMLElement {
  return element("section", { "aria-labelledby": id }, element("h2", { id }, heading), ...content);
}
