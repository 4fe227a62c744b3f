import assert from "node:assert/strict";
import { test } from "node:test";

import { readLink, writeLink } from "../src/view/link";

test("what a link says is what it was made of", () => {
  const view = { from: 10, to: 2 ** 50 };
  const selection = { from: 5, to: 6 };
  const link = writeLink({ gil: 2, view, selection, picked: null, lane: 1 }, { from: 0, to: 9 });
  assert.deepEqual(readLink(link), { gil: 2, view, selection, pick: null });
});

test("a link that makes no sense says nothing", () => {
  const nothing = { gil: 0, view: null, selection: null, pick: null };
  for (const hash of ["", "#", "#gil=-1&view=9-2", "#view=<b>&range=1-", "#gil=1e9&pick=a@b"]) {
    assert.deepEqual({ ...readLink(hash), gil: 0 }, nothing);
  }
});
