import assert from "node:assert/strict";
import { test } from "node:test";
import { readSleeps } from "../src/format/sleeps";
import type { ParkedAt, Parks, ProcessReport } from "../src/model/report";
import { lifeIn, slept } from "../src/model/sleeps";
import { tableOf } from "./made";

const waker = { tid: 2, name: "b", count: 9, waited_s: 9 };
const other = { tid: 3, name: "c", count: 9, waited_s: 9 };
const wait: ParkedAt = {
  ...{ tid: 1, name: "a", cause: "lock off the GIL", of: null, count: 9, waited_s: 9, max_ms: 9 },
  ...{ lock: 7, contended: true, places: [], wakers: [waker, other] },
};
const none: Parks = { threads: [], waits: [], pauses: { count: 0, stopped_s: 0, max_ms: 0 } };

function process(waits: ParkedAt[], parks: Parks | null = null): ProcessReport {
  return { pid: 1, argv: [], gils: [], started_s: 1, duration_s: 8, lock_waits: waits, parks };
}

/** Sleeps of row, begin, length, waker; and whether garbage was collected. */
function sleeps(
  ...those: [number, number, number, number, number?][]
): ReturnType<typeof readSleeps> {
  let last = 0;
  const rows = those.map(([row, begin, length, waker, collection = 0]) => {
    const step = begin - last;
    last = begin;
    return { row, begin: step, length, waker, place: 0, collection };
  });
  return readSleeps(tableOf(rows));
}

const S = 1e9;

test("a sleep counts with its piece inside the range, for the one that ended it", () => {
  const lockWaits = sleeps([0, 0, 4, 1], [0, 3, 4, 2], [0, 9, 3, 2], [0, 20, 5, 1]);
  const rows = slept(
    process([wait]),
    { parks: null, lockWaits },
    { from: 2, to: 12 },
    S,
  ).lock_waits;
  assert.deepEqual(rows, [
    {
      ...wait,
      ...{ count: 3, waited_s: 9, max_ms: 4000 },
      wakers: [
        { ...other, count: 2, waited_s: 7 },
        { ...waker, count: 1, waited_s: 2 },
      ],
    },
  ]);
});

test("rows that count nothing in a range are gone, and the longest comes first", () => {
  const rows = [wait, { ...wait, lock: 8 }, { ...wait, lock: 9 }];
  const lockWaits = sleeps([0, 0, 1, 1], [2, 2, 3, 1], [1, 30, 1, 1], [7, 3, 1, 1]);
  const told = slept(process(rows), { parks: null, lockWaits }, { from: 0, to: 10 }, S).lock_waits;
  assert.deepEqual(
    told?.map(({ lock, waited_s: waited }) => [lock, waited]),
    [
      [9, 3],
      [7, 1],
    ],
  );
});

test("idle waits come last however long they are", () => {
  const rows = [wait, { ...wait, lock: 8, contended: false }];
  const lockWaits = sleeps([0, 0, 1, 1], [1, 0, 9, 1]);
  const told = slept(process(rows), { parks: null, lockWaits }, { from: 0, to: 10 }, S).lock_waits;
  assert.deepEqual(
    told?.map(({ lock }) => lock),
    [7, 8],
  );
});

test("sleeps in a pause of the world that overlap are one pause, cut at the range", () => {
  const paused = { ...wait, cause: "pause", lock: null };
  const parks = { ...none, waits: [paused, { ...paused, tid: 5, name: "e" }] };
  const those = sleeps([0, 0, 4, 1], [1, 2, 4, 1, 1], [0, 10, 1, 1], [1, 14, 9, 1]);
  const told = slept(
    process([], parks),
    { parks: those, lockWaits: null },
    { from: 1, to: 16 },
    S,
  ).parks;
  const pauses = { count: 3, stopped_s: 8, max_ms: 5000, collections: 1 };
  assert.deepEqual(told?.pauses, pauses);
  assert.deepEqual(told?.threads, [
    { tid: 5, name: "e", causes: [{ cause: "pause", waited_s: 6, parks: { count: 2 } }] },
    { tid: 1, name: "a", causes: [{ cause: "pause", waited_s: 4, parks: { count: 2 } }] },
  ]);
});

test("a process lives for the part of a range in which it was recorded", () => {
  assert.equal(lifeIn(process([]), 0, 4), 3);
  assert.equal(lifeIn(process([]), 2, 100), 7);
  assert.equal(lifeIn(process([]), 10, 11), 0);
});
