/**
 * Numbers and times as `ungil report` prints them (python/ungil/formatting.py): three digits, and
 * the unit that fits.
 */

const NS_PER_S = 1e9;

/** `significant` digits, or all of them before the point: `5.10`, `83.0`, `999`, `12,345`. */
export function digits(value: number, significant = 3): string {
  for (let places = significant - 1; places > 0; places--) {
    // What would be rounded up to one more digit before the point has one less behind it.
    if (Math.abs(value) < 10 ** (significant - places) - 0.5 * 10 ** -places) {
      return fixed(value, places);
    }
  }
  return grouped(value);
}

/** `places` digits behind the point. `toFixed` rounds a tie up; the terminal, to the even digit. */
function fixed(value: number, places: number): string {
  const scaled = value * 10 ** places;
  // Only a multiple of 1/8 can be a tie of at most two places, and of it the product is exact.
  const isTie = Number.isInteger(value * 8) && Math.abs(scaled % 1) === 0.5;
  return isTie
    ? ((2 * Math.round(scaled / 2)) / 10 ** places).toFixed(places)
    : value.toFixed(places);
}

/** A whole number with its thousands apart: `12,345`. */
export function grouped(value: number): string {
  return fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A length of time in ns: `4.20µs`, `5.10ms`, `83.0s`. */
export function duration(ns: number): string {
  if (!(ns > 0)) return "0";
  for (const [unit, factor] of [
    ["ns", 1],
    ["µs", 1e3],
    ["ms", 1e6],
  ] as const) {
    // What would be rounded up to 1000 belongs to the next unit.
    if (ns / factor < 999.5) return digits(ns / factor) + unit;
  }
  return digits(ns / NS_PER_S) + "s";
}

/** A length of time in seconds, as {@link duration} writes it. */
export function seconds(value: number): string {
  // Times are whole nanoseconds, or means of them. Of the product alone, 93,450 ns would be more.
  return duration(Math.round(value * NS_PER_S * 1e3) / 1e3);
}

/** `part` of `whole` in percent: `0%`, `<1%`, `37%`, `100%`. */
export function share(part: number, whole: number): string {
  if (!(whole > 0) || !(part > 0)) return "0%";
  const percent = (100 * part) / whole;
  return percent <= 0.5 ? "<1%" : `${fixed(percent, 0)}%`;
}

/** How many a second, of a count and a length in ns. */
export function rate(count: number, ns: number): string {
  return ns > 0 ? digits((count * NS_PER_S) / ns) : "0";
}

/** A count in at most five characters: `812`, `9,999`, `12.3k`, `4.56M`. */
export function tally(count: number): string {
  if (count < 10_000) return grouped(count);
  if (count < 1e3 * 999.5) return digits(count / 1e3) + "k";
  if (count < 1e6 * 999.5) return digits(count / 1e6) + "M";
  return digits(count / 1e9) + "G";
}

/** `1 thread`, `2 threads`, `2 processes`. */
export function plural(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  return `${grouped(count)} ${noun}${noun.endsWith("s") ? "es" : "s"}`;
}
