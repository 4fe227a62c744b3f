import assert from "node:assert/strict";
import { test } from "node:test";
import { contended, lockNumbers } from "../src/model/locks";
import type { ParkedAt, ProcessReport } from "../src/model/report";

const wait: ParkedAt = {
  ...{ tid: 1, name: "a", cause: "lock off the GIL", of: null, count: 3, max_ms: 900 },
  ...{ lock: 7, contended: true, waited_s: 2, places: [], wakers: [] },
};

function process(waits: ParkedAt[]): ProcessReport {
  return { pid: 1, argv: [], gils: [], duration_s: 10, lock_waits: waits };
}

test("a lock that threads took in turn has a row if they waited for long enough", () => {
  const short = { ...wait, waited_s: 0.05 };
  const idle = { ...wait, contended: false };
  assert.deepEqual(contended(process([wait, short, idle])), [wait]);
});

test("an older report has no waits for locks", () => {
  assert.deepEqual(contended({ pid: 1, argv: [], gils: [] }), []);
});

test("locks are numbered in the order in which they come first", () => {
  const numbers = lockNumbers([wait, { ...wait, lock: 3 }, { ...wait, tid: 2 }]);
  assert.deepEqual(
    [...numbers],
    [
      [7, 1],
      [3, 2],
    ],
  );
});
