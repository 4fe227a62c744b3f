import assert from "node:assert/strict";
import { test } from "node:test";

import { theSame, withRepeats } from "../src/model/repeats";

/** Something told of a process. */
interface About {
  pid: number | null;
  same_as: number | null;
}

function about(pid: number | null, same_as: number | null): About {
  return { pid, same_as };
}

/** The processes of which others say the same, for each piece that is told. */
function others(all: About[]): number[][] {
  return withRepeats(all, (it) => it.pid).map((it) => it.pids);
}

test("what is said of several processes is told once, with the others", () => {
  const all = [about(1, null), about(1, null), about(2, 0), about(3, 0), about(2, 1)];
  assert.deepEqual(others(all), [[2, 3], [2]]);
});

test("two GILs of a process are one of the others", () => {
  assert.deepEqual(others([about(1, null), about(2, 0), about(2, 0), about(null, 0)]), [[2]]);
});

test("a few of many processes are named", () => {
  assert.equal(theSame([11, 12]), "the same for pid 11, 12");
  assert.equal(theSame([1, 2, 3, 4, 5, 6, 7]), "the same for pid 1, 2, 3, 4, 5 and 2 more");
});
