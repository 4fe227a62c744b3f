/** The blocks of the page, packed; a reader waits for those that have not come yet. */

import { inflate } from "../format/blocks";
import type { TableRef } from "../format/summary";
import { readTable, type Table } from "../format/table";

/** Blocks by number. */
export class Blocks {
  readonly #texts = new Map<number, string>();
  readonly #awaited = new Map<number, ((text: string) => void)[]>();

  /** Takes the text of a block. */
  put(block: number, text: string): void {
    this.#texts.set(block, text);
    this.#awaited.get(block)?.forEach((wake) => wake(text));
    this.#awaited.delete(block);
  }

  /** The bytes of a block. */
  async bytes(block: number): Promise<Uint8Array> {
    return inflate(await this.#text(block));
  }

  /** What a block of JSON says. */
  async json<T>(block: number): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(block))) as T;
  }

  /** A table, or null if there is none. */
  table(ref: TableRef): Promise<Table>;
  table(ref: TableRef | null | undefined): Promise<Table | null>;
  async table(ref: TableRef | null | undefined): Promise<Table | null> {
    return ref ? readTable(ref, await this.bytes(ref.block)) : null;
  }

  #text(block: number): Promise<string> {
    const text = this.#texts.get(block);
    if (text !== undefined) return Promise.resolve(text);
    return new Promise((resolve) => {
      this.#awaited.set(block, [...(this.#awaited.get(block) ?? []), resolve]);
    });
  }
}
