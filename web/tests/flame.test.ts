import assert from "node:assert/strict";
import { test } from "node:test";

import { flame, type Blamed } from "../src/model/flame";
import { readSamples, sampled } from "../src/model/samples";
import { tableOf } from "./made";

const STACKS = {
  strings: ["", "run", "app.py", "match", "native", "libre.so", "it was too short"],
  frames: [
    [1, 2, 7, 0, 0, 1],
    [1, 2, 8, 0, 0, 1],
    [3, 0, 0, 4, 5],
  ],
  stacks: [[0], [1], [2, 0]],
  whys: [6],
};
/** A row of samples; `begin` is told from that of the row before. */
const ROW = { lane: 1, length: 100, at: 0, why: 0, waiters: 0 };
const NAMES = ["main", "worker"];
/** What was waited for the worker, and of that in long holds. */
const known = (waited: number, longWaited: number): Pick<Blamed, "waited" | "longWaited"> => ({
  waited: [0, waited],
  longWaited: [0, longWaited],
});

test("each sample of a long hold weighs what others waited, by the samples with a stack", () => {
  const samples = readSamples(
    tableOf([
      { ...ROW, begin: 0, waited: 60, stack: 2 },
      { ...ROW, begin: 0, waited: 60, stack: 0, why: 1 },
      { ...ROW, begin: 500, waited: 30, stack: 3 },
      { ...ROW, begin: 500, waited: 60, stack: 1 },
    ]),
  );
  const whole = { range: { from: 0, to: 5000 }, ...known(150, 150), long: 100, lookFor: 50 };
  const { root, longHolds, looks } = flame(samples, STACKS, NAMES, whole);
  assert.deepEqual([root.waited, longHolds, looks], [150, 3, 0]);
  const [thread] = root.children;
  assert.equal(thread?.label, "worker");
  const [run] = thread.children;
  // Both lines of one function are one frame.
  assert.deepEqual([run?.label, run?.line, run?.waited, run?.kind], ["run", 0, 150, "user"]);
  const [match] = run?.children ?? [];
  assert.deepEqual([match?.file, match?.waited, match?.kind], ["libre.so", 30, "native"]);
  const half = { ...whole, range: { from: 550, to: 1050 } };
  assert.equal(flame(samples, STACKS, NAMES, half).root.waited, 30 / 2 + 60 / 2);
});

/** Looks at short holds of the worker. */
const LOOKS = tableOf([
  { ...ROW, begin: 100, length: 10, waited: 10, stack: 1, waiters: 1 },
  { ...ROW, begin: 200, length: 0, waited: 0, stack: 2, waiters: 3 },
  { ...ROW, begin: 400, length: 100, waited: 90, stack: 3, waiters: 2 },
]);

test("what was waited in short holds is spread over the looks at them, by the waiters", () => {
  const range = { from: 0, to: 1000 };
  const blamed = { range, ...known(490, 90), long: 100, lookFor: 1000 };
  const made = flame(readSamples(LOOKS), STACKS, NAMES, blamed);
  assert.deepEqual([made.root.waited, made.looks, made.longHolds], [490, 2, 1]);
  const [run] = made.root.children[0]?.children ?? [];
  assert.equal(run?.waited, 490);
  const early = { ...blamed, range: { from: 0, to: 200 }, ...known(120, 0) };
  assert.equal(flame(readSamples(LOOKS), STACKS, NAMES, early).root.waited, 120);
});

test("a look stands for no more than its time, and of a time without one a hold stands for itself", () => {
  const blamed = { range: { from: 0, to: 200 }, ...known(5000, 0), long: 100, lookFor: 50 };
  assert.equal(flame(readSamples(LOOKS), STACKS, NAMES, blamed).root.waited, 50);
  const between = { ...blamed, range: { from: 105, to: 200 } };
  assert.equal(flame(readSamples(LOOKS), STACKS, NAMES, between).root.waited, 5);
  const nobody = { ...blamed, ...known(0, 0) };
  assert.equal(flame(readSamples(LOOKS), STACKS, NAMES, nobody).root.waited, 0);
});

/** The columns of three threads, of which the first one made others wait for 10, then 20 and 5. */
function columnsOf(names: readonly string[]): [string, number][] {
  const samples = readSamples(
    tableOf([
      { ...ROW, lane: 0, begin: 0, waited: 10, stack: 1 },
      { ...ROW, lane: 1, begin: 500, waited: 20, stack: 1 },
      { ...ROW, lane: 2, begin: 500, waited: 5, stack: 1 },
    ]),
  );
  const blamed = { range: { from: 0, to: 5000 }, ...known(35, 35), long: 100, lookFor: 50 };
  const { root } = flame(samples, STACKS, names, blamed);
  return root.children.map(({ label, waited }) => [label, waited]);
}

test("threads of a pool are one column, and one that stands alone keeps its name", () => {
  assert.deepEqual(columnsOf(["pool-1_0", "pool-1_12", "io-2"]), [
    ["pool-1_*", 30],
    ["io-2", 5],
  ]);
});

test("threads that are numbered before their function are one column, too", () => {
  assert.deepEqual(columnsOf(["Thread-7 (serve)", "Thread-12 (serve)", "Thread-2 (accept)"]), [
    ["Thread-* (serve)", 30],
    ["Thread-2 (accept)", 5],
  ]);
});

test("a hold without a stack has the reason in words", () => {
  const row = { ...ROW, begin: 0, waited: 5, stack: 0, why: 1 };
  const known = { samples: readSamples(tableOf([row])), stacks: STACKS };
  const told = sampled(known, { lane: 1, from: 0, to: 10 });
  assert.deepEqual(told, { stack: [], why: "it was too short", samples: 0 });
});
