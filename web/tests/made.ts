/** Makes runs of a GIL for tests: few threads that want it at random. */

import type { Holds, Loose } from "../src/format/holds";
import { readChunk } from "../src/format/holds";
import type { Table } from "../src/format/table";
import { NEVER, type Measured } from "../src/model/measure";

/** Numbers from 0 to below 1, the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A table of these rows. */
export function tableOf(rows: readonly Record<string, number>[]): Table {
  const none = new Uint8Array(rows.length);
  const names = Object.keys(rows[0] ?? {});
  const columns = new Map(
    names.map((name) => [name, Float64Array.from(rows, (row) => row[name] ?? 0)]),
  );
  return { rows: rows.length, column: (name) => columns.get(name) ?? none };
}

/** No waits but those of holds. */
export const NOTHING_LOOSE: Loose = {
  lane: new Uint16Array(),
  begin: new Float64Array(),
  end: new Float64Array(),
};

/** `count` holds of `lanes` threads, and drop requests. */
export function madeHolds(seed: number, count: number, lanes: number): Holds {
  const next = random(seed);
  const upTo = (most: number): number => Math.floor(next() * most);
  const lastEnd = new Array<number>(lanes).fill(0);
  const rows = [];
  const asks = [];
  let at = 0;
  let lastAsk = 0;
  for (let i = 0; i < count; i++) {
    const lane = upTo(lanes);
    const gap = upTo(3) ? 0 : upTo(20);
    const length = upTo(4) ? upTo(30) : upTo(300);
    const begin = at + gap;
    const room = begin - (lastEnd[lane] as number);
    const wait = upTo(3) ? Math.min(upTo(120), room) + 1 : 0;
    rows.push({ lane, gap, length, wait, end: upTo(4) });
    at = begin + length;
    lastEnd[lane] = at;
    if (!upTo(3)) {
      const asked = begin + upTo(length + 1);
      asks.push({ at: asked - lastAsk, lane: (lane + 1) % lanes });
      lastAsk = asked;
    }
  }
  return readChunk(0, tableOf(rows), null, tableOf(asks));
}

/** All that is needed to measure `holds`. */
export function measuredOf(holds: Holds, lanes: number, loose = NOTHING_LOOSE): Measured {
  return {
    holds,
    loose,
    before: { how: new Uint8Array(lanes).fill(NEVER), lane: -1 },
    lanes,
    blameAfter: 100,
    switchInterval: 50,
    usPerUnit: 1,
  };
}
