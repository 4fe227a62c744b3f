/** Keeps what is told of locks at what the reader has selected. */

import type { ProcessSleeps } from "../format/sleeps";
import { lifeIn, slept } from "../model/sleeps";
import type { FullReport, ProcessReport } from "../model/report";
import { duration } from "../units/numbers";
import type { Context } from "./context";
import { locksSection, showLocks } from "./locks";
import { parksSection, showParks } from "./parks";

/** Both sections about locks: of processes with a GIL, and of those without. */
export class WaitsAtLocks {
  /** Waits without a GIL; null if every process had its GIL. */
  readonly parks: HTMLElement | null;
  readonly locks = locksSection();
  readonly #context: Context;
  readonly #sleeps = new Map<number, Promise<ProcessSleeps>>();
  #asked = 0;

  constructor(context: Context) {
    this.#context = context;
    this.parks = parksSection(context.summary);
  }

  /** Shows what `report` says of the selection. */
  async update(report: FullReport): Promise<void> {
    const asked = ++this.#asked;
    const processes = await Promise.all(
      report.processes.map((process, index) => this.#selected(process, index)),
    );
    if (asked !== this.#asked) return;
    const said = this.#said();
    if (this.parks) showParks(this.parks, processes, said);
    showLocks(this.locks, processes, said);
  }

  async #selected(process: ProcessReport, index: number): Promise<ProcessReport> {
    const { store, summary } = this.#context;
    const { selection } = store.now;
    if (!selection || !summary.processes[index]?.sleeps) return process;
    const sleeps =
      this.#sleeps.get(index) ?? this.#context.client.ask("sleeps", { process: index });
    this.#sleeps.set(index, sleeps);
    const seconds = (units: number): number => (units * summary.unit_ns) / 1e9 + summary.offset_s;
    const [from, to] = [seconds(selection.from), seconds(selection.to)];
    return {
      ...process,
      ...slept(process, await sleeps, selection, summary.unit_ns),
      duration_s: lifeIn(process, from, to),
    };
  }

  /** What a selection lacks. */
  #said(): string {
    const { store, summary } = this.#context;
    if (!store.now.selection || !summary.sleeps_from) return "";
    const shortest = duration(summary.sleeps_from * summary.unit_ns);
    return ` Of a selected time, sleeps of less than ${shortest} are left out.`;
  }
}
