/** Lays holds and waits out in columns of equal width, which a canvas can draw. */

import { firstRowAfter, type Level } from "../format/level";
import { End, type Holds, type Loose } from "../format/holds";
import { lowerBound, type Range } from "./range";

/** Shares of each column, and marks, of one row of the picture. */
export interface Strip {
  held: Float32Array;
  waited: Float32Array;
  notRun: Float32Array;
  forced: Uint8Array;
  asked: Uint8Array;
}

/** A row for each lane that is shown, and the GIL's: who held, by colour. */
export interface Raster {
  columns: number;
  /** By row. */
  strips: Strip[];
  /** By colour of the holder. */
  holders: Float32Array[];
}

/** What is drawn, and where it goes. */
export interface Layout {
  view: Range;
  columns: number;
  /** By lane, its row, or -1. */
  rowOf: Int32Array;
  rows: number;
  /** By lane, its colour. */
  colourOf: Uint8Array;
  colours: number;
}

/** An empty picture. */
export function emptyRaster(layout: Layout): Raster {
  const { columns } = layout;
  return {
    columns,
    strips: Array.from({ length: layout.rows }, () => ({
      held: new Float32Array(columns),
      waited: new Float32Array(columns),
      notRun: new Float32Array(columns),
      forced: new Uint8Array(columns),
      asked: new Uint8Array(columns),
    })),
    holders: Array.from({ length: layout.colours }, () => new Float32Array(columns)),
  };
}

/** Adds a level of detail. */
export function addLevel(raster: Raster, layout: Layout, level: Level): void {
  const { view } = layout;
  const scale = layout.columns / (view.to - view.from);
  const first = Math.floor(view.from / level.width);
  const last = Math.ceil(view.to / level.width);
  for (let lane = 0; lane + 1 < level.laneStart.length; lane++) {
    const end = level.laneStart[lane + 1] as number;
    const strip = raster.strips[layout.rowOf[lane] as number];
    const holder = raster.holders[layout.colourOf[lane] as number] as Float32Array;
    let row = firstRowAfter(level, level.laneStart[lane] as number, end, first);
    for (; row < end && (level.bucket[row] as number) < last; row++) {
      const begin = level.bucket[row] as number;
      const buckets = level.run[row] as number;
      const from = (begin * level.width - view.from) * scale;
      const to = ((begin + buckets) * level.width - view.from) * scale;
      const held = (level.held[row] as number) / level.width;
      if (held) spread(holder, from, to, held);
      if (!strip) continue;
      if (held) spread(strip.held, from, to, held);
      const waited = (level.waited[row] as number) / level.width;
      if (waited) spread(strip.waited, from, to, waited);
      const notRun = (level.notRun[row] as number) / level.width;
      if (notRun) spread(strip.notRun, from, to, notRun);
      if (level.forced[row]) mark(strip.forced, (from + to) / 2);
      if (level.asks[row]) mark(strip.asked, (from + to) / 2);
    }
  }
}

/** Adds exact holds, and the waits before them. */
export function addHolds(raster: Raster, layout: Layout, holds: Holds): void {
  const { view } = layout;
  const scale = layout.columns / (view.to - view.from);
  const column = (at: number): number => (at - view.from) * scale;
  for (let i = 0; i < holds.count; i++) {
    const begin = holds.begin[i] as number;
    const end = holds.end[i] as number;
    const waitBegin = holds.waitBegin[i] as number;
    if (end < view.from || waitBegin > view.to) continue;
    const lane = holds.lane[i] as number;
    const strip = raster.strips[layout.rowOf[lane] as number];
    const isInside = begin < view.to && end > view.from;
    if (isInside) {
      const holder = raster.holders[layout.colourOf[lane] as number] as Float32Array;
      spread(holder, column(begin), column(end), 1);
    }
    if (!strip) continue;
    if (isInside) spread(strip.held, column(begin), column(end), 1);
    if (begin > waitBegin) spread(strip.waited, column(waitBegin), column(begin), 1);
    if (holds.how[i] === End.Forced) mark(strip.forced, column(end));
  }
  const { asks, extras } = holds;
  for (let i = lowerBound(asks.at, view.from); i < asks.at.length; i++) {
    if ((asks.at[i] as number) >= view.to) break;
    const strip = raster.strips[layout.rowOf[asks.lane[i] as number] as number];
    if (strip) mark(strip.asked, column(asks.at[i] as number));
  }
  extras.hold.forEach((hold, extra) => {
    const [begin, end] = [holds.begin[hold] as number, holds.end[hold] as number];
    const strip = raster.strips[layout.rowOf[holds.lane[hold] as number] as number];
    if (!strip || end <= view.from || begin >= view.to || end <= begin) return;
    const share = (extras.notRun[extra] as number) / (end - begin);
    if (share > 0) spread(strip.notRun, column(begin), column(end), share);
  });
}

/** Adds waits that no hold ended. */
export function addLoose(raster: Raster, layout: Layout, loose: Loose): void {
  const { view } = layout;
  const scale = layout.columns / (view.to - view.from);
  for (let i = 0; i < loose.lane.length; i++) {
    const [begin, end] = [loose.begin[i] as number, loose.end[i] as number];
    const strip = raster.strips[layout.rowOf[loose.lane[i] as number] as number];
    if (!strip || end <= view.from || begin >= view.to) continue;
    spread(strip.waited, (begin - view.from) * scale, (end - view.from) * scale, 1);
  }
}

/** Adds `share` to all columns from `from` to `to`, to those at the edges in proportion. */
export function spread(values: Float32Array, from: number, to: number, share: number): void {
  const low = Math.max(from, 0);
  const high = Math.min(to, values.length);
  if (high < low) return;
  const first = Math.floor(low);
  const last = Math.floor(high);
  if (first === last) {
    if (first < values.length) values[first] = (values[first] as number) + (high - low) * share;
    return;
  }
  values[first] = (values[first] as number) + (first + 1 - low) * share;
  for (let at = first + 1; at < last; at++) values[at] = (values[at] as number) + share;
  if (last < values.length) values[last] = (values[last] as number) + (high - last) * share;
}

function mark(marks: Uint8Array, at: number): void {
  const column = Math.floor(at);
  if (column >= 0 && column < marks.length) marks[column] = 1;
}
