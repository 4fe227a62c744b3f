/** Exact holds and waits, from the chunks of a GIL ("Chunks" in FORMAT.md). */

import type { Table } from "./table";

/** How a hold ended. */
export const End = { Voluntary: 0, Forced: 1, Unseen: 2, Cut: 3 } as const;

/** Holds of one GIL in the order of time; arrays of equal length. Times are in units. */
export interface Holds {
  count: number;
  lane: Uint16Array;
  begin: Float64Array;
  end: Float64Array;
  /** When the thread began to wait for this hold; its begin if it did not wait. */
  waitBegin: Float64Array;
  /** 1 if there was a wait, even of length 0. */
  waited: Uint8Array;
  /** One of {@link End}. */
  how: Uint8Array;
  extras: Extras;
  asks: Asks;
}

/** What more is known of a few holds; `hold` is the index of the hold. */
export interface Extras {
  hold: Uint32Array;
  notRun: Float64Array;
  notRunMost: Float64Array;
  /** Time on a processor + 1; 0 if that is not known. */
  cpu: Float64Array;
}

/** Drop requests, in the order of time. */
export interface Asks {
  at: Float64Array;
  lane: Uint16Array;
}

/** Waits that no hold of a chunk ended. */
export interface Loose {
  lane: Uint16Array;
  begin: Float64Array;
  end: Float64Array;
}

/** The holds of one chunk that begins at `from`. */
export function readChunk(
  from: number,
  holds: Table,
  extras: Table | null,
  asks: Table | null,
): Holds {
  const made = emptyHolds(holds.rows);
  const [gap, length, wait] = [holds.column("gap"), holds.column("length"), holds.column("wait")];
  made.lane.set(holds.column("lane"));
  made.how.set(holds.column("end"));
  let at = from;
  for (let i = 0; i < holds.rows; i++) {
    at += gap[i] as number;
    made.begin[i] = at;
    const waiting = wait[i] as number;
    made.waitBegin[i] = waiting ? at - waiting + 1 : at;
    made.waited[i] = waiting ? 1 : 0;
    at += length[i] as number;
    made.end[i] = at;
  }
  if (extras) {
    made.extras = {
      hold: Uint32Array.from(extras.column("hold")),
      notRun: Float64Array.from(extras.column("not_run")),
      notRunMost: Float64Array.from(extras.column("not_run_most")),
      cpu: Float64Array.from(extras.column("cpu")),
    };
  }
  if (asks) {
    made.asks = {
      at: summed(asks.column("at"), from),
      lane: Uint16Array.from(asks.column("lane")),
    };
  }
  return made;
}

/** The waits of a table of loose waits. */
export function readLoose(table: Table | null): Loose {
  if (!table)
    return { lane: new Uint16Array(), begin: new Float64Array(), end: new Float64Array() };
  const begin = summed(table.column("begin"), 0);
  const length = table.column("length");
  return {
    lane: Uint16Array.from(table.column("lane")),
    begin,
    end: begin.map((at, i) => at + (length[i] as number)),
  };
}

/** The holds of chunks that follow one another, as one. */
export function joined(parts: readonly Holds[]): Holds {
  if (parts.length === 1) return parts[0] as Holds;
  const made = emptyHolds(total(parts, (part) => part.count));
  const extras = total(parts, (part) => part.extras.hold.length);
  const asks = total(parts, (part) => part.asks.at.length);
  made.extras = emptyExtras(extras);
  made.asks = { at: new Float64Array(asks), lane: new Uint16Array(asks) };
  let at = 0;
  let extra = 0;
  let ask = 0;
  for (const part of parts) {
    for (const key of ["lane", "begin", "end", "waitBegin", "waited", "how"] as const) {
      made[key].set(part[key], at);
    }
    made.extras.hold.set(
      part.extras.hold.map((hold) => hold + at),
      extra,
    );
    for (const key of ["notRun", "notRunMost", "cpu"] as const) {
      made.extras[key].set(part.extras[key], extra);
    }
    made.asks.at.set(part.asks.at, ask);
    made.asks.lane.set(part.asks.lane, ask);
    at += part.count;
    extra += part.extras.hold.length;
    ask += part.asks.at.length;
  }
  return made;
}

function emptyHolds(count: number): Holds {
  return {
    count,
    lane: new Uint16Array(count),
    begin: new Float64Array(count),
    end: new Float64Array(count),
    waitBegin: new Float64Array(count),
    waited: new Uint8Array(count),
    how: new Uint8Array(count),
    extras: emptyExtras(0),
    asks: { at: new Float64Array(), lane: new Uint16Array() },
  };
}

function emptyExtras(count: number): Extras {
  return {
    hold: new Uint32Array(count),
    notRun: new Float64Array(count),
    notRunMost: new Float64Array(count),
    cpu: new Float64Array(count),
  };
}

/** The sums of all values up to each, and `from`. */
function summed(values: ArrayLike<number>, from: number): Float64Array {
  let at = from;
  return Float64Array.from(values, (value) => (at += value));
}

function total<T>(parts: readonly T[], of: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + of(part), 0);
}
