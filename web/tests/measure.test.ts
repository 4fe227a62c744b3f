import assert from "node:assert/strict";
import { test } from "node:test";

import { joined, readChunk, type Holds } from "../src/format/holds";
import { measure } from "../src/model/measure";
import type { Range } from "../src/model/range";
import { Waiting } from "../src/model/waiting";
import { madeHolds, measuredOf, NOTHING_LOOSE, random, tableOf } from "./made";

const LANES = 4;

/** What each unit of time looks like: who holds, and who waits. */
function moments(holds: Holds, range: Range): { holder: number; waiters: Set<number> }[] {
  const at = Array.from({ length: range.to - range.from }, () => ({
    holder: -1,
    waiters: new Set<number>(),
  }));
  for (let i = 0; i < holds.count; i++) {
    const lane = holds.lane[i] as number;
    for (let t = holds.begin[i] as number; t < (holds.end[i] as number); t++) {
      const moment = at[t - range.from];
      if (moment) moment.holder = lane;
    }
    for (let t = holds.waitBegin[i] as number; t < (holds.begin[i] as number); t++) {
      at[t - range.from]?.waiters.add(lane);
    }
  }
  return at;
}

test("times and blame are those of a model that looks at every moment", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const holds = madeHolds(seed, 80, LANES);
    const next = random(seed + 1000);
    const end = holds.end.at(-1) ?? 0;
    const from = Math.floor(next() * end * 0.6);
    const range = { from, to: from + 1 + Math.floor(next() * (end - from)) };
    const numbers = measure(measuredOf(holds, LANES), range);
    const all = moments(holds, range);
    const blame = new Map<string, number>();
    for (const { holder, waiters } of all) {
      for (const waiter of waiters) {
        const key = `${waiter} ${holder}`;
        blame.set(key, (blame.get(key) ?? 0) + 1);
      }
    }
    assert.equal(numbers.held, all.filter((it) => it.holder >= 0).length);
    assert.equal(numbers.contended, all.filter((it) => it.holder >= 0 && it.waiters.size).length);
    for (let lane = 0; lane < LANES; lane++) {
      assert.equal(numbers.lanes.held[lane], all.filter((it) => it.holder === lane).length);
      assert.equal(numbers.lanes.waited[lane], all.filter((it) => it.waiters.has(lane)).length);
    }
    const found = new Map(numbers.blame.map((row) => [`${row.victim} ${row.culprit}`, row.waited]));
    assert.deepEqual(new Map([...found].sort()), new Map([...blame].sort()), `seed ${seed}`);
  }
});

test("the times of parts that follow one another add up to the whole", () => {
  const holds = madeHolds(7, 500, LANES);
  const end = (holds.end.at(-1) ?? 0) + 1;
  const it = measuredOf(holds, LANES);
  const whole = measure(it, { from: 0, to: end });
  const cut = Math.floor(end / 3);
  const parts = [measure(it, { from: 0, to: cut }), measure(it, { from: cut, to: end })];
  for (const name of ["held", "waited", "contended", "handoffs", "voluntary", "forced"] as const) {
    assert.equal(
      parts.reduce((sum, part) => sum + part[name], 0),
      whole[name],
      name,
    );
  }
});

test("loose waits count, and are charged to who held meanwhile", () => {
  const holds = madeHolds(3, 40, 2);
  const end = holds.end.at(-1) ?? 0;
  const loose = {
    ...NOTHING_LOOSE,
    lane: Uint16Array.of(2),
    begin: Float64Array.of(0),
    end: Float64Array.of(end),
  };
  const numbers = measure(measuredOf(holds, 3, loose), { from: 0, to: end });
  assert.equal(numbers.lanes.waited[2], end);
  assert.equal(numbers.contended, numbers.held);
  const charged = numbers.blame.filter((row) => row.victim === 2);
  assert.equal(
    charged.reduce((sum, row) => sum + row.waited, 0),
    end,
  );
});

test("a hold that was asked for before the range is unanswered in all of its part", () => {
  const rows = tableOf([{ lane: 0, gap: 0, length: 300, wait: 0, end: 0 }]);
  const holds = readChunk(0, rows, null, tableOf([{ at: 10, lane: 1 }]));
  const lanesOf = (from: number, to: number) => measure(measuredOf(holds, 2), { from, to }).lanes;
  assert.equal(lanesOf(0, 300).unansweredSum[0], 290);
  assert.equal(lanesOf(150, 280).unansweredSum[0], 130);
  assert.equal(lanesOf(150, 240).unansweredHolds[0], 0, "shorter than the blame time");
});

test("chunks that are joined are measured as one", () => {
  const holds = madeHolds(11, 200, LANES);
  const half = (from: number, to: number): Holds => ({
    count: to - from,
    lane: holds.lane.slice(from, to),
    begin: holds.begin.slice(from, to),
    end: holds.end.slice(from, to),
    waitBegin: holds.waitBegin.slice(from, to),
    waited: holds.waited.slice(from, to),
    how: holds.how.slice(from, to),
    extras: holds.extras,
    asks: from ? { at: new Float64Array(), lane: new Uint16Array() } : holds.asks,
  });
  const range = { from: 100, to: 3000 };
  const parts = joined([half(0, 90), half(90, 200)]);
  assert.deepEqual(
    measure(measuredOf(parts, LANES), range),
    measure(measuredOf(holds, LANES), range),
  );
});

test("what all waited between two moments is the sum of what each did", () => {
  const next = random(5);
  const begins = Float64Array.from({ length: 200 }, () => Math.floor(next() * 1000));
  const ends = begins.map((begin) => begin + Math.floor(next() * 100));
  const waiting = new Waiting(begins, ends);
  for (let i = 0; i < 50; i++) {
    const from = Math.floor(next() * 1000);
    const to = from + Math.floor(next() * 200);
    const sum = begins.reduce(
      (all, begin, wait) =>
        all + Math.max(Math.min(ends[wait] as number, to) - Math.max(begin, from), 0),
      0,
    );
    assert.equal(waiting.between(from, to), sum);
  }
});
