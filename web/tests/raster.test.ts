import assert from "node:assert/strict";
import { test } from "node:test";

import { addHolds, emptyRaster, spread, type Layout } from "../src/model/raster";
import { kept, panned, zoomed } from "../src/view/timeline/moves";
import { madeHolds } from "./made";

test("a stretch fills whole columns, and those at its edges in part", () => {
  const columns = new Float32Array(4);
  spread(columns, 0.5, 2.25, 1);
  spread(columns, -3, 0.25, 1);
  spread(columns, 3.5, 9, 0.5);
  assert.deepEqual([...columns], [0.75, 1, 0.25, 0.25]);
});

test("what columns show is as much as was held, wherever the view is", () => {
  const holds = madeHolds(2, 300, 3);
  const end = holds.end.at(-1) ?? 0;
  const layout: Layout = {
    view: { from: 0, to: end },
    columns: 97,
    rowOf: Int32Array.of(0, 1, 2),
    rows: 3,
    colourOf: new Uint8Array(3),
    colours: 1,
  };
  const raster = emptyRaster(layout);
  addHolds(raster, layout, holds);
  const drawn = (raster.holders[0] as Float32Array).reduce((sum, share) => sum + share, 0);
  const held = holds.end.reduce((sum, at, i) => sum + at - (holds.begin[i] as number), 0);
  assert.ok(Math.abs((drawn * end) / layout.columns - held) < held * 1e-3);
});

test("the view stays inside the run, and no narrower than can be shown", () => {
  const whole = { from: 0, to: 1e9 };
  assert.deepEqual(kept({ from: -5, to: 10 }, whole), { from: 0, to: 15 });
  assert.deepEqual(panned({ from: 0, to: 100 }, whole, -1), { from: 0, to: 100 });
  const deep = zoomed({ from: 500, to: 2500 }, whole, 1e9, 0.5, 1);
  assert.equal(deep.to - deep.from, 1000);
  const out = zoomed(deep, whole, 1e-12, 0.5, 1);
  assert.deepEqual(out, whole);
});
