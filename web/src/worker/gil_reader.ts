/** Reads what a page holds of one GIL, as far as it is asked for, and keeps some of it. */

import { joined, readChunk, readLoose, type Holds, type Loose } from "../format/holds";
import { readLevel, type Level } from "../format/level";
import type { ChunkRef, GilSummary, Lanes, TableRef } from "../format/summary";
import type { Table } from "../format/table";
import { after, NEVER, type Before } from "../model/measure";
import type { Range } from "../model/range";
import type { Blocks } from "./block_store";

/** Holds that are kept decoded: about 60 MB. */
const KEPT_HOLDS = 2_000_000;

/** One GIL of the page. */
export class GilReader {
  readonly gil: GilSummary;
  readonly #blocks: Blocks;
  readonly #chunks = new Map<number, Holds>();
  #keptHolds = 0;
  /** By chunk, what was before it; as far as they have been read in order. */
  readonly #before: Before[];

  constructor(gil: GilSummary, blocks: Blocks) {
    this.gil = gil;
    this.#blocks = blocks;
    this.#before = [{ how: new Uint8Array(gil.lanes.rows).fill(NEVER), lane: -1 }];
  }

  /** Who the threads are. */
  lanes(): Promise<Lanes> {
    return this.#blocks.json<Lanes>(this.gil.lanes.block);
  }

  /** One level of detail. */
  async level(index: number): Promise<Level> {
    const ref = this.gil.levels[index];
    if (!ref) throw new Error(`there is no level ${index}`);
    return readLevel(ref.width, await this.#blocks.table(ref.table), this.gil.lanes.rows);
  }

  /** A table of this GIL, or null if it has none. */
  table(ref: TableRef | null | undefined): Promise<Table | null> {
    return this.#blocks.table(ref);
  }

  /** The exact holds of one chunk. */
  async chunk(index: number): Promise<Holds> {
    const kept = this.#chunks.get(index);
    if (kept) {
      // The last used is the last to go.
      this.#chunks.delete(index);
      this.#chunks.set(index, kept);
      return kept;
    }
    const ref = this.gil.chunks[index];
    if (!ref) throw new Error(`there is no chunk ${index}`);
    const [holds, extras, asks] = await Promise.all([
      this.#blocks.table(ref.holds),
      this.table(ref.extras),
      this.table(ref.asks),
    ]);
    const read = readChunk(ref.from, holds, extras, asks);
    if (!this.#chunks.has(index)) this.#keptHolds += read.count;
    this.#chunks.set(index, read);
    for (const [old, holds] of this.#chunks) {
      if (this.#keptHolds <= KEPT_HOLDS) break;
      this.#chunks.delete(old);
      this.#keptHolds -= holds.count;
    }
    return read;
  }

  /** The waits that no hold ended. */
  async loose(): Promise<Loose> {
    return readLoose(await this.table(this.gil.loose));
  }

  /** Which chunks a range needs. */
  chunksOf(range: Range): number[] {
    return chunksIn(this.gil.chunks, range);
  }

  /** The holds of some chunks, in the order of time. */
  async holds(chunks: readonly number[], pace?: Pace): Promise<Holds> {
    const parts: Holds[] = [];
    for (const index of chunks) {
      parts.push(await this.chunk(index));
      await pace?.();
    }
    return joined(parts);
  }

  /** What was before a chunk. */
  async before(chunk: number, pace?: Pace): Promise<Before> {
    while (this.#before.length <= chunk) {
      const last = this.#before.length - 1;
      const holds = await this.chunk(last);
      // Another question may have gone the same way meanwhile.
      if (this.#before.length === last + 1) {
        this.#before.push(after(this.#before[last] as Before, holds));
      }
      await pace?.();
    }
    return this.#before[chunk] as Before;
  }
}

/** The indices of the chunks that a range needs. */
export function chunksIn(chunks: readonly ChunkRef[], range: Range): number[] {
  const needed: number[] = [];
  chunks.forEach((chunk, index) => {
    if (chunk.to >= range.from && chunk.waits_from <= range.to) needed.push(index);
  });
  return needed;
}

/** Waits while measuring is paused; throws {@link Cancelled} if nobody waits for the answer. */
export type Pace = () => Promise<void>;

/** Nobody waits for the answer any more. */
export class Cancelled extends Error {}
