import assert from "node:assert/strict";
import { test } from "node:test";
import { lineOf, saidOfPauses, waitsForOthers, wokenBy } from "../src/model/parks";
import type { ParkedAt, Parks } from "../src/model/report";

const waker = { tid: 2, name: "b", count: 1, waited_s: 1, frame: "put (/srv/app.py:7)" };
const wait: ParkedAt = {
  ...{ tid: 1, name: "a", cause: "object", of: "dict", count: 3, waited_s: 2, max_ms: 900 },
  ...{ places: [], wakers: [waker] },
};
const own = { ...wait, wakers: [{ ...waker, tid: 1, waited_s: 1.5 }] };
const idle = { ...wait, cause: "event" };

function parks(pauses: Parks["pauses"]): Parks {
  return { threads: [], waits: [own, idle, wait], pauses };
}

test("a wait that the thread ended itself, or for an event, has no row", () => {
  assert.deepEqual(waitsForOthers(parks({ count: 0, stopped_s: 0, max_ms: 0 })), [wait]);
});

test("who woke a thread is told with the part of its wait and the line", () => {
  assert.equal(wokenBy(waker, wait), "b (app.py:7) 50%");
  assert.equal(wokenBy({ ...waker, tid: 1, frame: null }, wait), "itself 50%");
  assert.equal(wokenBy({ ...waker, tid: null, frame: null }, wait), "unknown 50%");
});

test("a line of a library names the line of the user's own that called it", () => {
  assert.equal(
    lineOf("get (/usr/lib/queue.py:171)", "run (/srv/app.py:9)"),
    "queue.py:171 from app.py:9",
  );
});

test("pauses are counted with how long they took, and how many were collections", () => {
  assert.equal(
    saidOfPauses(parks({ count: 0, stopped_s: 0, max_ms: 0 }), 2),
    "0 pauses of the world.",
  );
  const some = parks({ count: 2, stopped_s: 0.5, max_ms: 300, collections: 1 });
  assert.equal(
    saidOfPauses(some, 2),
    "2 pauses of the world, 500ms in all (25%), 300ms at most; 1 of them was a garbage collection.",
  );
});
