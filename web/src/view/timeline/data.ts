/** What the timeline draws from: levels of detail, and exact chunks where it is zoomed in. */

import type { Holds, Loose } from "../../format/holds";
import type { Level } from "../../format/level";
import type { GilSummary } from "../../format/summary";
import { addHolds, addLevel, addLoose, type Layout, type Raster } from "../../model/raster";
import { missingIn } from "../../model/rough";
import type { Range } from "../../model/range";
import type { Client } from "../../worker/client";
import { chunksIn } from "../../worker/gil_reader";

/** Chunks that are kept, about 30 MB. */
const KEPT_CHUNKS = 64;
/** Up to so many chunks are quicker to draw than a level, and tell more. */
const FEW_CHUNKS = 2;

/** Buckets may be so many columns wide before a view needs single holds. */
const WIDEST_BUCKET = 2;
/** How many chunks wide a view is from which on one of them is fetched before it is needed. */
const SOON = 40;

/** What was drawn. */
export interface Drawn {
  /** Nothing better is on its way. */
  isFinal: boolean;
  /** From single holds and waits, not from buckets. */
  isExact: boolean;
}

/** The events of one GIL, fetched from the worker as the view needs them. */
export class TimelineData {
  readonly #client: Client;
  readonly #index: number;
  readonly #gil: GilSummary;
  readonly #onCome: () => void;
  readonly #levels = new Map<number, Level>();
  readonly #chunks = new Map<number, Holds>();
  readonly #asked = new Set<string>();
  #loose: Loose | null = null;

  /** Calls `onCome` whenever something has come that was asked for. */
  constructor(client: Client, index: number, gil: GilSummary, onCome: () => void) {
    this.#client = client;
    this.#index = index;
    this.#gil = gil;
    this.#onCome = onCome;
  }

  /** Adds the best that is there for the view to `raster`, and asks for better. */
  draw(raster: Raster, layout: Layout): Drawn {
    const unitsPerColumn = (layout.view.to - layout.view.from) / layout.columns;
    const exact = this.#exact(layout.view, unitsPerColumn);
    if (exact) {
      const chunks = exact.map((index) => this.#chunk(index));
      if (chunks.every((chunk) => chunk !== null)) {
        for (const chunk of chunks) addHolds(raster, layout, chunk);
        const loose = this.#looseWaits();
        if (loose) addLoose(raster, layout, loose);
        return { isFinal: loose !== null, isExact: true };
      }
    }
    this.#fetchNear(layout.view);
    const wanted = this.#levelFor(unitsPerColumn);
    const level = this.#bestLevel(wanted);
    if (level) addLevel(raster, layout, level);
    const isWanted = this.#levels.has(wanted) || !this.#gil.levels.length;
    return { isFinal: !exact && isWanted, isExact: false };
  }

  /** Fetches all levels, the coarsest first, so that zooming need not wait. */
  async fetchLevels(): Promise<void> {
    for (let level = 0; level < this.#gil.levels.length; level++) {
      if (this.#levels.has(level)) continue;
      const come = await this.#client.askAhead("level", { gil: this.#index, level });
      this.#levels.set(level, come);
    }
  }

  /** The coarsest level. */
  async coarsest(): Promise<Level | null> {
    if (!this.#gil.levels.length) return null;
    const come = await this.#client.ask("level", { gil: this.#index, level: 0 });
    this.#levels.set(0, come);
    return come;
  }

  /** The chunks to draw from, null if a level tells as much. */
  #exact(view: Range, unitsPerColumn: number): number[] | null {
    const { chunks, levels } = this.#gil;
    if (!chunks.length || missingIn(this.#gil, view).length) return null;
    const needed = chunksIn(chunks, view);
    const finest = levels.at(-1);
    const isTooCoarse = !finest || finest.width > WIDEST_BUCKET * unitsPerColumn;
    return needed.length <= FEW_CHUNKS || isTooCoarse ? needed : null;
  }

  /** Fetches the chunk in the middle of a view that is soon narrow enough for single holds. */
  #fetchNear(view: Range): void {
    const { chunks } = this.#gil;
    const middle = (view.from + view.to) / 2;
    const [first] = chunks;
    if (!first || view.to - view.from > SOON * (first.to - first.from)) return;
    const index = chunks.findIndex((chunk) => chunk.to >= middle);
    if (index >= 0) this.#chunk(index);
  }

  /** The coarsest level whose buckets are no wider than a column, or the finest. */
  #levelFor(unitsPerColumn: number): number {
    const index = this.#gil.levels.findIndex((level) => level.width <= unitsPerColumn);
    return index < 0 ? this.#gil.levels.length - 1 : index;
  }

  #bestLevel(wanted: number): Level | null {
    const found = this.#levels.get(wanted);
    if (found) return found;
    this.#ask(`level ${wanted}`, async () => {
      const level = await this.#client.ask("level", { gil: this.#index, level: wanted });
      this.#levels.set(wanted, level);
    });
    for (let level = wanted - 1; level >= 0; level--) {
      const coarser = this.#levels.get(level);
      if (coarser) return coarser;
    }
    return null;
  }

  #chunk(index: number): Holds | null {
    const found = this.#chunks.get(index);
    if (found) {
      this.#chunks.delete(index);
      this.#chunks.set(index, found);
      return found;
    }
    this.#ask(`chunk ${index}`, async () => {
      this.#chunks.set(index, await this.#client.ask("chunk", { gil: this.#index, chunk: index }));
      for (const old of this.#chunks.keys()) {
        if (this.#chunks.size <= KEPT_CHUNKS) break;
        this.#chunks.delete(old);
      }
    });
    return null;
  }

  #looseWaits(): Loose | null {
    if (!this.#loose) {
      this.#ask("loose", async () => {
        this.#loose = await this.#client.ask("loose", { gil: this.#index });
      });
    }
    return this.#loose;
  }

  #ask(key: string, fetch: () => Promise<void>): void {
    if (!this.#gil.levels.length && key.startsWith("level")) return;
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    void fetch().finally(() => {
      this.#asked.delete(key);
      this.#onCome();
    });
  }
}
