/** How long waits, holds and gaps were: histograms with the bumps that betray a convoy. */

import uPlot from "uplot";

import { BINS, BINS_PER_OCTAVE, binOf, binStart, type Histogram } from "../model/lengths";
import { duration, grouped, share, tally } from "../units/numbers";
import { colours } from "./colours";
import { element, replace } from "./dom";

const HEIGHT = 150;
/** Multiples of the switch interval that are marked. */
const MULTIPLES = 4;
const MULTIPLES_IN_WORDS = [
  "one switch interval",
  "two switch intervals",
  "three switch intervals",
];

/** What one histogram is about. */
export interface Lengths {
  title: string;
  /** One and several of what is counted. */
  noun: [string, string];
  histogram: Histogram;
  /** The style sheet's name of its colour. */
  colour: "wait" | "hold" | "gap";
}

/** What is common to all of them. */
export interface Scale {
  unitNs: number;
  /** In µs, or null if it is not known. */
  switchIntervalUs: number | null;
  /** Whether bars are sums of time, or counts. */
  byTime: boolean;
}

/** Fills `place` with histograms of `all`, over the same lengths. */
export function showHistograms(place: HTMLElement, all: readonly Lengths[], scale: Scale): void {
  const bins = all.flatMap(({ histogram }) => usedBins(histogram));
  if (!bins.length) {
    replace(place, element("p", { class: "quiet" }, "No thread held the GIL in this time."));
    return;
  }
  const first = Math.max(Math.min(...bins) - BINS_PER_OCTAVE / 2, 0);
  const last = Math.min(Math.max(...bins) + BINS_PER_OCTAVE / 2, BINS - 1);
  const some = all.filter(({ histogram }) => usedBins(histogram).length);
  const made = some.map((lengths) => figure(lengths, scale, first, last));
  replace(place, ...made.map(({ element }) => element));
  // Not only once it is observed: the browser prints what is there when its media have changed.
  for (const { draw } of made) draw();
}

function usedBins(histogram: Histogram): number[] {
  const used: number[] = [];
  histogram.count.forEach((count, bin) => {
    if (count) used.push(bin);
  });
  return used.length ? [used[0] as number, used.at(-1) as number] : [];
}

/** A histogram, and what draws it once it is in the page. */
interface Figure {
  element: HTMLElement;
  draw: () => void;
}

function figure(lengths: Lengths, scale: Scale, first: number, last: number): Figure {
  const words = inWords(lengths, scale);
  const chart = element("div", { class: "chart", role: "img", "aria-label": words });
  const made = element(
    "figure",
    {},
    element("figcaption", {}, element("b", {}, lengths.title), " ", words),
    chart,
  );
  // The plot needs to know how wide its place is.
  let plot: uPlot | null = null;
  const draw = (): void => {
    const width = Math.floor(chart.clientWidth);
    if (!width || width === plot?.width) return;
    if (plot) plot.setSize({ width, height: HEIGHT });
    else plot = plotted(chart, lengths, scale, first, last, width);
  };
  new ResizeObserver(draw).observe(chart);
  return { element: made, draw };
}

function plotted(
  chart: HTMLElement,
  lengths: Lengths,
  scale: Scale,
  first: number,
  last: number,
  width: number,
): uPlot {
  const palette = colours();
  const fill = { wait: palette.wait, hold: palette.holders[0], gap: palette.quiet }[lengths.colour];
  const indices = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const values = indices.map((bin) => valueOf(lengths.histogram, bin, scale));
  const axis = {
    stroke: palette.quiet,
    font: "11px system-ui, sans-serif",
    grid: { stroke: palette.faint, width: 0.5 },
    ticks: { show: false },
  };
  return new uPlot(
    {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: false, range: [first - 0.5, last + 0.5] }, y: { range: [0, null] } },
      series: [
        {},
        {
          ...(fill ? { fill, stroke: fill } : {}),
          width: 0,
          points: { show: false },
          paths: uPlot.paths.bars?.({ size: [0.9, Infinity] }) ?? null,
        },
      ].map((series) => series as uPlot.Series),
      axes: [
        {
          ...axis,
          size: 26,
          splits: () => decades(first, last),
          values: (_, bins) =>
            bins.map((bin) =>
              duration(Math.round(binStart(bin + 0.5) * 1e3)).replace(/\.0+(?=\D)/, ""),
            ),
        },
        {
          ...axis,
          size: 48,
          values: (_, all) => all.map((value) => (scale.byTime ? duration(value) : tally(value))),
        },
      ],
      hooks: {
        draw: [
          (plot) => {
            drawMultiples(plot, lengths, scale);
          },
        ],
      },
    },
    [indices, values],
    chart,
  );
}

function valueOf(histogram: Histogram, bin: number, scale: Scale): number {
  const { count, total } = histogram;
  return scale.byTime ? (total[bin] as number) * scale.unitNs : (count[bin] as number);
}

/** The bins in which powers of ten begin, in bins with fractions; fewer if there are many. */
function decades(first: number, last: number): number[] {
  const found: number[] = [];
  for (let us = 1; Math.log2(us) * BINS_PER_OCTAVE <= last; us *= 10) {
    const bin = Math.log2(us) * BINS_PER_OCTAVE;
    if (bin >= first) found.push(bin - 0.5);
  }
  return found.length > 1 ? found : [first, last];
}

/** Dashed lines where whole switch intervals are. */
function drawMultiples(plot: uPlot, lengths: Lengths, scale: Scale): void {
  const interval = scale.switchIntervalUs;
  if (lengths.colour === "gap" || !interval) return;
  const { ctx: context, bbox } = plot;
  const palette = colours();
  context.save();
  context.strokeStyle = context.fillStyle = palette.ink;
  context.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  context.lineWidth = devicePixelRatio;
  context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  context.textBaseline = "top";
  let free = 0;
  for (let multiple = 1; multiple <= MULTIPLES; multiple++) {
    const at = Math.log2(multiple * interval) * BINS_PER_OCTAVE - 0.5;
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    context.globalAlpha = 0.5;
    context.beginPath();
    context.moveTo(x, bbox.top);
    context.lineTo(x, bbox.top + bbox.height);
    context.stroke();
    context.globalAlpha = 1;
    const text = multiple === 1 ? duration(interval * 1e3).replace(/\.00/, "") : `${multiple}×`;
    if (x < free) continue;
    context.fillText(text, x + 3 * devicePixelRatio, bbox.top);
    free = x + context.measureText(text).width + 6 * devicePixelRatio;
  }
  context.restore();
}

/** What the histogram tells, in a sentence. */
export function inWords({ histogram, noun, colour }: Lengths, scale: Scale): string {
  const count = histogram.count.reduce((sum, value) => sum + value, 0);
  const time = histogram.total.reduce((sum, value) => sum + value, 0);
  if (!count) return `No ${noun[0]}.`;
  const said = [
    `${grouped(count)} ${noun[count === 1 ? 0 : 1]}, ${duration(time * scale.unitNs)} together.`,
  ];
  const interval = scale.switchIntervalUs;
  if (colour === "wait" && interval && time > 0) {
    const bumps = [];
    for (let multiple = 1; multiple <= 3; multiple++) {
      const near = sumOf(
        histogram,
        binOf(interval * (multiple - 0.1)),
        binOf(interval * (multiple + 0.2)),
      );
      if (near.total > time / 20) {
        const what = MULTIPLES_IN_WORDS[multiple - 1] ?? "";
        bumps.push(
          `${grouped(near.count)} last about ${what} (${share(near.total, time)} of the time)`,
        );
      }
    }
    if (bumps.length) said.push(`${bumps.join(", ")}.`);
  }
  return said.join(" ");
}

function sumOf(
  histogram: Histogram,
  first: number,
  last: number,
): { count: number; total: number } {
  const sum = { count: 0, total: 0 };
  for (let bin = first; bin <= last; bin++) {
    sum.count += histogram.count[bin] ?? 0;
    sum.total += histogram.total[bin] ?? 0;
  }
  return sum;
}
