/** The sleeps of a process at locks ("Sleeps" in FORMAT.md). */

import type { Column, Table } from "./table";

/** Sleeps in the order in which they began; times are in units. */
export interface Sleeps {
  /** The row of the report that counts it. */
  row: Column;
  begin: Float64Array;
  end: Float64Array;
  /** Which waker of that row ended it, from 1; 0 is not known. */
  waker: Column;
  /** At which place of that row it was, from 1; 0 is none of these. */
  place: Column;
  /** 1 if the world was stopped to collect garbage. */
  collection: Column;
}

/** Both tables of a process, each null if it has none. */
export interface ProcessSleeps {
  parks: Sleeps | null;
  lockWaits: Sleeps | null;
}

/** The sleeps in a table. */
export function readSleeps(table: Table | null): Sleeps | null {
  if (!table) return null;
  let at = 0;
  const begin = Float64Array.from(table.column("begin"), (step) => (at += step));
  const length = table.column("length");
  return {
    row: table.column("row"),
    begin,
    end: begin.map((since, index) => since + (length[index] as number)),
    waker: table.column("waker"),
    place: table.column("place"),
    collection: table.column("collection"),
  };
}
