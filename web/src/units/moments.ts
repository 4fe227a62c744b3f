/** Moments of the trace: in seconds from its start, to the place that a view needs. */

/**
 * A moment, `ns` after the start of the trace, with as many places as tell `step` ns apart:
 * `1.234567s`.
 */
export function moment(ns: number, step: number): string {
  const places = Math.min(Math.max(Math.ceil(9 - Math.log10(Math.max(step, 1))), 0), 9);
  return `${(ns / 1e9).toFixed(places)}s`;
}

/** The distance of ticks on an axis: a 1, 2 or 5 of a power of ten, at least `least` ns. */
export function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  for (const factor of [1, 2, 5, 10]) {
    if (power * factor >= least) return power * factor;
  }
  return power * 10;
}

/** `12:03:41` on the clock of whoever reads it, with the date if that is asked for; "" if unknown. */
export function clock(startedAt: string | null | undefined, ns: number, withDate = false): string {
  const begin = startedAt ? Date.parse(startedAt) : NaN;
  const at = new Date(begin + ns / 1e6);
  if (Number.isNaN(at.getTime())) return "";
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return withDate ? `${day} ${time}` : time;
}
