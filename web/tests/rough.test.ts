import assert from "node:assert/strict";
import { test } from "node:test";

import type { Level } from "../src/format/level";
import type { GilSummary, TableRef } from "../src/format/summary";
import { measure } from "../src/model/measure";
import { missingIn, withMissing, type RoughSource } from "../src/model/rough";
import { madeHolds, measuredOf, tableOf } from "./made";

const LANES = 3;
const BLAME: TableRef = { block: 1, rows: 1, columns: [] };
const LENGTHS: TableRef = { block: 2, rows: 1, columns: [] };

test("where holds were left out, times are those of the level, and the rest is not known", async () => {
  const holds = madeHolds(9, 50, LANES);
  const range = { from: 0, to: 4000 };
  const numbers = measure(measuredOf(holds, LANES), range);
  const missing = [{ from: 1000, to: 2000, blame: BLAME, lengths: LENGTHS }];
  const one = (value: number): Uint32Array => Uint32Array.of(value);
  const level: Level = {
    width: 1000,
    laneStart: Uint32Array.of(0, 1, 1, 1),
    bucket: one(1),
    run: one(2),
    held: one(700),
    waited: one(200),
    notRun: one(0),
    holds: one(0),
    waits: one(0),
    forced: one(0),
    asks: one(0),
  };
  const busy = { width: 2000, held: [0, 0], waited: [0, 0], contended: [500, 100], holder: [0, 0] };
  const gil = { missing, busy, levels: [{}] } as unknown as GilSummary;
  const source: RoughSource = {
    gil,
    level: () => Promise.resolve(level),
    table: (ref) =>
      Promise.resolve(
        ref === BLAME
          ? tableOf([{ victim: 0, culprit: 2, waited: 300 }])
          : tableOf([{ what: 1, bin: 8, count: 5 }]),
      ),
  };
  const waits = numbers.waitLengths.count[8] ?? 0;
  const blamed = numbers.blame.find((row) => row.victim === 0 && row.culprit === 1)?.waited ?? 0;
  const rough = await withMissing(numbers, source, range, 1);
  assert.equal(missingIn(gil, { from: 2000, to: 3000 }).length, 0);
  assert.deepEqual([rough.held, rough.waited, rough.contended], [1400, 400, 600]);
  assert.equal(rough.waitLengths.count[8], waits + 5);
  const row = rough.blame.find((it) => it.victim === 0 && it.culprit === 1);
  assert.equal(row?.waited, blamed + 300);
  assert.equal(rough.isExact, false);
  assert.ok(Number.isNaN(rough.handoffs) && Number.isNaN(rough.lanes.gapMax[0]));
});
