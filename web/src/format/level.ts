/** Levels of detail: what each lane did in buckets of equal width ("Levels" in FORMAT.md). */

import type { Column, Table } from "./table";

/** A level that has been read. Rows are sorted by lane, then bucket. */
export interface Level {
  width: number;
  /** Where the rows of each lane begin; one more than there are lanes. */
  laneStart: Uint32Array;
  bucket: Uint32Array;
  /** How many buckets the row is about. */
  run: Uint32Array;
  /** Time in each of these buckets. */
  held: Column;
  waited: Column;
  notRun: Column;
  holds: Column;
  waits: Column;
  forced: Column;
  asks: Column;
}

/** The level that `table` holds, of a GIL with `lanes` lanes. */
export function readLevel(width: number, table: Table, lanes: number): Level {
  const [lane, bucket, run] = [table.column("lane"), table.column("bucket"), table.column("run")];
  const laneStart = new Uint32Array(lanes + 1);
  const first = new Uint32Array(table.rows);
  const runs = new Uint32Array(table.rows);
  let now = 0;
  let at = 0;
  for (let row = 0; row < table.rows; row++) {
    const step = lane[row] as number;
    if (step) laneStart.fill(row, now + 1, now + step + 1);
    now += step;
    if (step) at = 0;
    first[row] = at + (bucket[row] as number);
    runs[row] = (run[row] as number) + 1;
    at = (first[row] as number) + (runs[row] as number);
  }
  laneStart.fill(table.rows, now + 1);
  return {
    width,
    laneStart,
    bucket: first,
    run: runs,
    held: table.column("held"),
    waited: table.column("waited"),
    notRun: table.column("not_run"),
    holds: table.column("holds"),
    waits: table.column("waits"),
    forced: table.column("forced"),
    asks: table.column("asks"),
  };
}

/** The first of the rows from `low` to `high` that ends after `bucket`. */
export function firstRowAfter(level: Level, low: number, high: number, bucket: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((level.bucket[middle] as number) + (level.run[middle] as number) > bucket) high = middle;
    else low = middle + 1;
  }
  return low;
}
