import assert from "node:assert/strict";
import { test } from "node:test";

import { flame } from "../src/model/flame";
import { readSamples } from "../src/model/samples";
import { tableOf } from "./made";

const STACKS = {
  strings: ["", "run", "app.py", "match", "native", "libre.so"],
  frames: [
    [1, 2, 7, 0, 0, 1],
    [1, 2, 8, 0, 0, 1],
    [3, 0, 0, 4, 5],
  ],
  stacks: [[0], [1], [2, 0]],
  whys: ["it ended before its stack was read"],
};
const ROW = { lane: 1, length: 100, at: 0, why: 0 };

test("each sample weighs what others waited in its hold, by the samples with a stack", () => {
  const samples = readSamples(
    tableOf([
      { ...ROW, begin: 1000, waited: 60, stack: 1 },
      { ...ROW, begin: 0, waited: 60, stack: 2 },
      { ...ROW, begin: 0, waited: 60, stack: 0, why: 1 },
      { ...ROW, begin: 500, waited: 30, stack: 3 },
    ]),
  );
  const root = flame(samples, STACKS, ["main", "worker"], { from: 0, to: 5000 });
  assert.equal(root.waited, 90);
  const [thread] = root.children;
  assert.equal(thread?.label, "worker");
  const [run] = thread.children;
  // Both lines of one function are one frame.
  assert.deepEqual([run?.label, run?.line, run?.waited, run?.kind], ["run", 0, 90, "user"]);
  const [match] = run?.children ?? [];
  assert.deepEqual([match?.file, match?.waited, match?.kind], ["libre.so", 30, "native"]);
  const half = flame(samples, STACKS, ["main", "worker"], { from: 1050, to: 1550 });
  assert.equal(half.waited, 60 / 2 + 30 / 2);
});
