/** Measures what the reader has selected, and shows it: the whole run's numbers are the report's. */

import { figuresOfNumbers, figuresOfReport, type Figures } from "../model/figures";
import { culpritsOf } from "../model/numbers";
import { wholeOf, type Context, type ShownGil } from "./context";
import type { Findings } from "./findings";
import type { Rest } from "./rest";
import type { Sections } from "./sections";

/** Keeps the sections at the selection; a newer selection cancels the measuring of an older one. */
export class Measured {
  readonly #context: Context;
  readonly #rest: Rest;
  readonly #sections: Sections;
  readonly #findings: Findings;
  readonly #onFigures: (figures: Figures) => void;
  #running: AbortController | null = null;
  #done: Promise<void> = Promise.resolve();

  /** `onFigures` is called with all figures that are shown. */
  constructor(
    context: Context,
    rest: Rest,
    sections: Sections,
    findings: Findings,
    onFigures: (figures: Figures) => void,
  ) {
    this.#context = context;
    this.#rest = rest;
    this.#sections = sections;
    this.#findings = findings;
    this.#onFigures = onFigures;
  }

  /** Resolves when what is selected now has been shown. */
  get done(): Promise<void> {
    return this.#done;
  }

  /** Shows the numbers of what is selected now. */
  update(): void {
    const { gil } = this.#context;
    if (!gil) return;
    this.#running?.abort();
    const running = new AbortController();
    this.#running = running;
    this.#done = this.#show(gil, running.signal).catch((error: unknown) => {
      if (running.signal.aborted) return;
      this.#sections.failed(`Not measured: ${String(error)}.`);
      this.#sections.measuring(false);
    });
  }

  async #show(gil: ShownGil, signal: AbortSignal): Promise<void> {
    const { client, store, summary } = this.#context;
    const { selection } = store.now;
    const range = selection ?? wholeOf(summary);
    this.#sections.measuring(true);
    // Tables take longer to fill than a frame: not while the reader zooms.
    await this.#rest.rested();
    if (signal.aborted) return;
    let figures = selection ? null : this.#reported(gil);
    if (figures) this.#figures(figures, gil);
    const ask = { gil: gil.index, ...range };
    const numbers = await client.ask("numbers", ask, signal);
    const waited = culpritsOf(numbers, gil.lanes.tid.length);
    const { longWaited } = numbers.lanes;
    const flame = await client.ask("flame", {
      gil: gil.index,
      blamed: { range, waited, longWaited },
    });
    await this.#rest.rested();
    if (signal.aborted) return;
    if (!figures) {
      figures = figuresOfNumbers(numbers, gil.lanes, summary.unit_ns);
      this.#figures(figures, gil);
    }
    this.#findings.show(selection ? numbers : null, gil);
    this.#sections.showLengths(numbers, gil);
    this.#sections.showFlame(flame, figures.waited);
    this.#sections.measuring(false);
  }

  #figures(figures: Figures, gil: ShownGil): void {
    this.#sections.showFigures(figures, gil);
    this.#onFigures(figures);
  }

  /** The report's own numbers of a GIL, null if it has none of it. */
  #reported(gil: ShownGil): Figures | null {
    const { report, summary } = this.#context;
    const ref = summary.gils[gil.index];
    const process = ref && report?.processes[ref.process];
    const reported = process?.gils[ref?.report ?? -1];
    if (!process || !reported) return null;
    const span = summary.end * summary.unit_ns;
    return figuresOfReport(process, reported, gil.lanes, span, summary.offset_s * 1e9);
  }
}
