import assert from "node:assert/strict";
import { test } from "node:test";

import type { Summary } from "../src/format/summary";
import { worstTenSeconds } from "../src/view/worst";

/** A run of 40 s in buckets of a second, in units of a nanosecond; waits by the second. */
function waiting(waits: Readonly<Record<number, number>>): Summary {
  const waited = Array.from({ length: 40 }, (_, second) => waits[second] ?? 0);
  const busy = { width: 1e9, waited };
  return { unit_ns: 1, end: 40e9, gils: [{ busy }] } as unknown as Summary;
}

test("the worst ten seconds are those in which most was waited", () => {
  const worst = worstTenSeconds(waiting({ 20: 3e9, 25: 2e9 }), 0);
  assert.deepEqual([worst?.from, worst?.to, worst?.waited], [16e9, 26e9, 5e9]);
});

test("next to no waits are nothing to look at, and neither is a run of ten seconds", () => {
  assert.equal(worstTenSeconds(waiting({ 20: 9e7 }), 0), null);
  assert.equal(worstTenSeconds({ ...waiting({ 2: 3e9 }), end: 10e9 }, 0), null);
});
