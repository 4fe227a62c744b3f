/** Paints the timeline on a canvas. All measures are in CSS pixels. */

import type { Range } from "../../model/range";
import type { Raster, Strip } from "../../model/raster";
import { tickStep } from "../../units/moments";
import { duration } from "../../units/numbers";
import type { Colours } from "../colours";
import { Pixels, pixelOf } from "./pixels";
import { GIL_LANE, HEAD, LANE, LANE_MARGIN, RULER } from "./measures";

/** All that a picture is made of. */
export interface Picture {
  width: number;
  height: number;
  /** Columns of the raster in a pixel. */
  density: number;
  view: Range;
  raster: Raster;
  /** By row of the raster: which lane's place it takes, from the first that is there. */
  places: number[];
  /** By row, its colour. */
  colourOf: number[];
  /** How far the lanes are scrolled. */
  scrolled: number;
  selection: Range | null;
  /** What is outlined: its place and its time. */
  picked: { place: number; begin: number; end: number; isWait: boolean } | null;
  /** The place of the lane that the keyboard is at. */
  cursor: number | null;
  unitNs: number;
  /** A moment in words. */
  momentOf(units: number, stepNs: number): string;
  /** What bars are drawn on first. */
  layer: HTMLCanvasElement;
}

/** A share above which a column is drawn as full, because it is so but for rounding. */
const FULL = 0.995;
/** Marks are drawn where each has so many pixels on average. */
const PIXELS_PER_MARK = 14;
/** The least that is seen of something that is there. */
const LEAST = 1.5;

/** Paints `picture`. */
export function draw(context: CanvasRenderingContext2D, picture: Picture, colours: Colours): void {
  const { width, height } = picture;
  context.clearRect(0, 0, width, height);
  const x = (at: number): number =>
    ((at - picture.view.from) / (picture.view.to - picture.view.from)) * width;
  drawRuler(context, picture, colours, x);
  const pixels = new Pixels(
    picture.layer,
    Math.round(width * picture.density),
    Math.round(height * picture.density),
  );
  context.fillStyle = colours.band;
  context.fillRect(0, RULER + 2, width, GIL_LANE - 4);
  fillGil(pixels, picture, colours);
  context.save();
  context.beginPath();
  context.rect(0, HEAD, width, height - HEAD);
  context.clip();
  const topOf = (row: number): number =>
    HEAD + (picture.places[row] as number) * LANE - picture.scrolled;
  picture.raster.strips.forEach((strip, row) => {
    const isAtCursor = picture.places[row] === picture.cursor;
    drawGround(context, picture, colours, topOf(row), isAtCursor);
    fillLane(pixels, picture, colours, strip, row, topOf(row));
  });
  context.restore();
  pixels.drawTo(context);
  context.save();
  context.beginPath();
  context.rect(0, HEAD, width, height - HEAD);
  context.clip();
  picture.raster.strips.forEach((strip, row) => {
    drawOver(context, picture, colours, strip, topOf(row));
  });
  drawPicked(context, picture, colours, x);
  context.restore();
  drawSelection(context, picture, colours, x);
}

function drawRuler(
  context: CanvasRenderingContext2D,
  picture: Picture,
  colours: Colours,
  x: (at: number) => number,
): void {
  const { view, width, height, unitNs } = picture;
  const nsPerPixel = ((view.to - view.from) * unitNs) / width;
  const step = tickStep(nsPerPixel * 75) / unitNs;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
    const left = Math.round(x(at)) + 0.5;
    context.fillStyle = colours.faint;
    context.globalAlpha = 0.45;
    context.fillRect(left - 0.5, RULER - 4, 1, height);
    context.globalAlpha = 1;
    context.fillStyle = colours.quiet;
    const moment = picture.momentOf(at, step * unitNs);
    if (left + 3 + context.measureText(moment).width <= width) {
      context.fillText(moment, left + 3, RULER / 2);
    }
  }
  context.fillStyle = colours.faint;
  context.fillRect(0, RULER - 1, width, 1);
}

/** Who holds, by colour, one above the other. */
function fillGil(pixels: Pixels, picture: Picture, colours: Colours): void {
  const { raster, density } = picture;
  const height = (GIL_LANE - 4) * density;
  const bottom = (RULER + 2) * density + height;
  const level = new Float32Array(raster.columns);
  raster.holders.forEach((held, colour) => {
    const pixel = pixelOf(colours.holders[colour] ?? colours.quiet);
    eachRun(held, level, (from, to, share, base) => {
      const foot = bottom - base * height;
      pixels.fill(from, to, foot - share * height, foot, pixel);
    });
    for (let at = 0; at < level.length; at++)
      level[at] = (level[at] as number) + (held[at] as number);
  });
}

/** What is below the bars of a lane. */
function drawGround(
  context: CanvasRenderingContext2D,
  { width }: Picture,
  colours: Colours,
  top: number,
  isAtCursor: boolean,
): void {
  if (isAtCursor) {
    context.fillStyle = colours.band;
    context.fillRect(0, top - 2, width, LANE);
  }
  context.fillStyle = colours.faint;
  context.fillRect(0, top + LANE - LANE_MARGIN, width, 1);
}

/** The bars of a lane: holds, and above them waits. */
function fillLane(
  pixels: Pixels,
  { density, colourOf }: Picture,
  colours: Colours,
  strip: Strip,
  row: number,
  laneTop: number,
): void {
  const height = (LANE - LANE_MARGIN) * density;
  const [top, least] = [laneTop * density, LEAST * density];
  const bottom = top + height;
  // Lanes that are scrolled out of sight do not cover the head.
  const fill = (from: number, to: number, high: number, low: number, pixel: number): void => {
    const begin = Math.max(high, HEAD * density);
    if (low > begin) pixels.fill(from, to, begin, low, pixel);
  };
  const holder = pixelOf(colours.holders[colourOf[row] as number] ?? colours.quiet);
  const none = new Float32Array(strip.held.length);
  eachRun(strip.held, none, (from, to, share) => {
    fill(from, to, bottom - Math.max(share * height, least), bottom, holder);
  });
  const wait = pixelOf(colours.wait);
  // A wait is a bar of half the height, so that it differs from a hold by more than its colour.
  const waitHeight = height * 0.5;
  eachRun(strip.waited, strip.held, (from, to, share, held) => {
    const foot = bottom - (held > 0 ? Math.max(held * height, least) : 0);
    const high = Math.max(foot - Math.max(share * waitHeight, least), top);
    fill(from, to, high, Math.max(foot, high + least), wait);
  });
}

/** What is above the bars of a lane. */
function drawOver(
  context: CanvasRenderingContext2D,
  { density }: Picture,
  colours: Colours,
  strip: Strip,
  top: number,
): void {
  const height = LANE - LANE_MARGIN;
  const bottom = top + height;
  const none = new Float32Array(strip.notRun.length);
  eachRun(strip.notRun, none, (from, to, share) => {
    drawHatch(context, colours, from / density, to / density, bottom - share * height, bottom);
  });
  drawMarks(context, strip, density, top, bottom, colours);
}

/** Stripes over what the kernel did not run. */
function drawHatch(
  context: CanvasRenderingContext2D,
  colours: Colours,
  left: number,
  right: number,
  top: number,
  bottom: number,
): void {
  context.fillStyle = colours.notRun;
  context.fillRect(left, top, right - left, bottom - top);
  context.fillStyle = colours.paper;
  for (let at = Math.ceil(left / 4) * 4; at < right; at += 4) {
    context.fillRect(at, top, 1, bottom - top);
  }
}

/** A triangle from above for a forced release, a tick from below for a drop request. */
function drawMarks(
  context: CanvasRenderingContext2D,
  strip: Strip,
  density: number,
  top: number,
  bottom: number,
  colours: Colours,
): void {
  context.fillStyle = colours.mark;
  for (const at of fewMarks(strip.forced, density)) {
    const x = at / density;
    context.beginPath();
    context.moveTo(x - 3, top);
    context.lineTo(x + 3, top);
    context.lineTo(x, top + 5);
    context.fill();
  }
  for (const at of fewMarks(strip.asked, density)) {
    const x = at / density;
    context.fillRect(x - 0.5, bottom - 5, 1.5, 8);
  }
}

/** The columns with a mark; none where there would be so many that they hide the lane. */
function fewMarks(marks: Uint8Array, density: number): number[] {
  const columns: number[] = [];
  marks.forEach((isMarked, column) => {
    if (isMarked) columns.push(column);
  });
  return columns.length * density * PIXELS_PER_MARK <= marks.length ? columns : [];
}

function drawPicked(
  context: CanvasRenderingContext2D,
  picture: Picture,
  colours: Colours,
  x: (at: number) => number,
): void {
  const { picked } = picture;
  if (!picked) return;
  const top = HEAD + picked.place * LANE - picture.scrolled;
  const left = Math.max(x(picked.begin), -4);
  const right = Math.min(x(picked.end), picture.width + 4);
  if (right < 0 || left > picture.width) return;
  context.strokeStyle = colours.ink;
  context.lineWidth = 2;
  const wide = Math.max(right - left, 3);
  context.strokeRect(left - 1, top - 1, wide + 2, LANE - LANE_MARGIN + 2);
  context.fillStyle = colours.ink;
  const text = duration((picked.end - picked.begin) * picture.unitNs);
  context.font = "bold 11px system-ui, sans-serif";
  context.textBaseline = "middle";
  if (wide < context.measureText(text).width + 8 && right + 60 < picture.width) {
    context.fillStyle = colours.paper;
    context.fillRect(right + 4, top, context.measureText(text).width + 8, LANE - LANE_MARGIN);
    context.fillStyle = colours.ink;
    context.fillText(text, right + 8, top + (LANE - LANE_MARGIN) / 2);
  }
}

function drawSelection(
  context: CanvasRenderingContext2D,
  picture: Picture,
  colours: Colours,
  x: (at: number) => number,
): void {
  const { selection, width, height } = picture;
  if (!selection) return;
  const [left, right] = [x(selection.from), x(selection.to)];
  context.fillStyle = colours.paper;
  context.globalAlpha = 0.55;
  if (left > 0) context.fillRect(0, RULER, Math.min(left, width), height);
  if (right < width) context.fillRect(Math.max(right, 0), RULER, width, height);
  context.globalAlpha = 1;
  context.fillStyle = colours.select;
  for (const edge of [left, right]) context.fillRect(edge - 1, 0, 2, height);
  context.fillRect(left, 0, right - left, 3);
}

/** Calls `use` with each run of columns that look alike: from, to, its share, and what is below. */
function eachRun(
  values: Float32Array,
  below: Float32Array,
  use: (from: number, to: number, share: number, below: number) => void,
): void {
  // A lane is some 20 pixels high: finer steps cannot be seen.
  const step = (value: number): number => (value >= FULL ? 1 : Math.ceil(value * 40) / 40);
  for (let from = 0; from < values.length;) {
    if (!((values[from] as number) > 0)) {
      from++;
      continue;
    }
    const share = step(values[from] as number);
    const base = step(below[from] as number);
    let to = from + 1;
    while (
      to < values.length &&
      (values[to] as number) > 0 &&
      step(values[to] as number) === share &&
      step(below[to] as number) === base
    ) {
      to++;
    }
    use(from, to, Math.min(share, 1), Math.min(base, 1));
    from = to;
  }
}
