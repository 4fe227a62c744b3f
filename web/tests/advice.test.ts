import assert from "node:assert/strict";
import { test } from "node:test";

import { withRepeats, type Advice } from "../src/model/advice";

/** A piece of advice about a process, of which only that matters. */
function about(pid: number | null, same_as: number | null): Advice {
  return {
    kind: "policy",
    cause: null,
    text: "",
    subject: { pid, gil: 0 },
    action: { shell: null, code: null },
    gain: null,
    confidence: { level: "high", because: "" },
    evidence: [],
    same_as,
  };
}

test("what is advised for several processes is told once, with the others", () => {
  const told = withRepeats([about(1, null), about(1, null), about(2, 0), about(3, 0), about(2, 1)]);
  assert.deepEqual(
    told.map((it) => it.pids),
    [[2, 3], [2]],
  );
});

test("two GILs of a process are one of the others", () => {
  assert.deepEqual(
    withRepeats([about(1, null), about(2, 0), about(2, 0), about(null, 0)]).map((it) => it.pids),
    [[2]],
  );
});
