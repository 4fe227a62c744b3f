import assert from "node:assert/strict";
import { test } from "node:test";

import { duration, plural, rate, seconds, share, tally } from "../src/units/numbers";

test("times have three digits and the unit that fits, as in the terminal", () => {
  const shown: [number, string][] = [
    [0, "0"],
    [4.2e3, "4.20µs"],
    [5.1e6, "5.10ms"],
    [93_450, "93.5µs"],
    [93_250, "93.2µs"],
    [93_750, "93.8µs"],
    [999.4, "999ns"],
    [999.6, "1.00µs"],
    [9.995e6, "10.0ms"],
    [83e9, "83.0s"],
    [12_345e9, "12,345s"],
  ];
  for (const [ns, text] of shown) {
    assert.equal(duration(ns), text);
    assert.equal(seconds(ns / 1e9), text);
  }
});

test("shares, rates and counts are those of the terminal", () => {
  assert.equal(share(0, 1), "0%");
  assert.equal(share(0.001, 1), "<1%");
  assert.equal(share(0.37, 1), "37%");
  assert.equal(rate(408 * 4, 4e9), "408");
  assert.equal(tally(12_345), "12.3k");
  assert.equal(plural(1, "thread"), "1 thread");
  assert.equal(plural(2, "process"), "2 processes");
});
