import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { inflate } from "../src/format/blocks";
import { readChunk } from "../src/format/holds";
import { readLevel } from "../src/format/level";
import { readTable } from "../src/format/table";

test("a column of several bytes is read from its planes, the least first", () => {
  const bytes = Uint8Array.from([1, 2, 0, 1, 7, 7, 5, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  const columns: [string, number][] = [
    ["two", 2],
    ["none", 0],
    ["one", 1],
    ["five", 5],
  ];
  const table = readTable({ block: 0, rows: 2, columns }, bytes);
  assert.deepEqual([...table.column("two")], [1, 2 + 256]);
  assert.deepEqual([...table.column("none")], [0, 0]);
  assert.deepEqual([...table.column("one")], [7, 7]);
  assert.deepEqual([...table.column("five")], [5, 2 ** 32]);
  assert.deepEqual([...table.column("of a later format")], [0, 0]);
});

test("a block is deflated bytes in base64", async () => {
  const text = deflateRawSync(Buffer.from("held, waited")).toString("base64");
  assert.equal(Buffer.from(await inflate(text)).toString(), "held, waited");
});

test("a table that is cut short is refused", () => {
  const ref = { block: 3, rows: 4, columns: [["lane", 1]] as [string, number][] };
  assert.throws(() => readTable(ref, new Uint8Array(3)), /block 3/);
});

function tableOf(columns: Record<string, number[]>, rows: number): ReturnType<typeof readTable> {
  const none = new Uint8Array(rows);
  return {
    rows,
    column: (name) => (columns[name] ? Uint32Array.from(columns[name]) : none),
  };
}

test("a chunk's gaps, lengths and waits become moments", () => {
  const holds = tableOf(
    { lane: [1, 2], gap: [0, 5], length: [10, 20], wait: [0, 8], end: [1, 0] },
    2,
  );
  const read = readChunk(100, holds, null, tableOf({ at: [3, 9], lane: [2, 1] }, 2));
  assert.deepEqual([...read.begin], [100, 115]);
  assert.deepEqual([...read.end], [110, 135]);
  assert.deepEqual([...read.waitBegin], [100, 108]);
  assert.deepEqual([...read.waited], [0, 1]);
  assert.deepEqual([...read.asks.at], [103, 112]);
});

test("a level's rows know their lane and bucket again", () => {
  const table = tableOf({ lane: [1, 0, 2], bucket: [4, 2, 7], run: [1, 0, 0], held: [8, 3, 1] }, 3);
  const level = readLevel(8, table, 5);
  assert.deepEqual([...level.laneStart], [0, 0, 2, 2, 3, 3]);
  assert.deepEqual([...level.bucket], [4, 8, 7]);
  assert.deepEqual([...level.run], [2, 1, 1]);
});
