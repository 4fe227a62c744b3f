import assert from "node:assert/strict";
import { test } from "node:test";

import { findingNumbers, jain } from "../src/model/finding_numbers";
import { inWords } from "../src/view/histograms";
import { inWords as timelineInWords } from "../src/view/timeline/words";
import type { Figures } from "../src/model/figures";
import { count, emptyHistogram } from "../src/model/lengths";
import { measure } from "../src/model/measure";
import { matrixOf } from "../src/view/blame";
import { madeHolds, measuredOf } from "./made";

const LANES = {
  tid: [11, 12, 13],
  name: ["a", "b", "c"],
  main: [true, false, false],
  started: [0, 0, 0],
  ended: [null, null, null],
  row: [0, 1, 2],
};

test("a finding's numbers of a selected time are those of its threads then", () => {
  const holds = madeHolds(4, 400, 3);
  const numbers = measure(measuredOf(holds, 3), { from: 0, to: 5000 });
  const finding = { kind: "convoy", text: "", threads: [12, 13] };
  const found = findingNumbers(finding, numbers, LANES, 1);
  const late = (numbers.lanes.lateSum[1] ?? 0) + (numbers.lanes.lateSum[2] ?? 0);
  assert.ok(late > 0);
  assert.equal(found?.cost, late);
  assert.equal(findingNumbers({ kind: "of a later version", text: "" }, numbers, LANES, 1), null);
});

test("waits for a GIL that nobody had are those of which nobody is the culprit", () => {
  const numbers = measure(measuredOf(madeHolds(4, 400, 3), 3), { from: 0, to: 5000 });
  const finding = { kind: "late-wakeups", text: "", threads: [12, 13] };
  const free = numbers.blame.filter((row) => row.culprit < 0).map((row) => row.waited);
  const unheld = free.reduce((sum, waited) => sum + waited, 0);
  assert.ok(unheld > 0);
  assert.equal(findingNumbers(finding, numbers, LANES, 1)?.cost, unheld);
});

test("Jain's index is 1 for equal shares, and 1 / n if one has all", () => {
  assert.equal(jain([3, 3, 3]), 1);
  assert.equal(jain([1, 0, 0, 0]), 0.25);
});

test("the matrix adds up to all blame, whatever has a line of its own", () => {
  const blame = Array.from({ length: 300 }, (_, i) => ({
    victim: i % 17,
    culprit: i % 11 ? i % 13 : ("nobody" as const),
    waited: i,
  }));
  const { cells, victims, culprits, restOfVictims, restOfCulprits } = matrixOf(blame, 5, 4);
  assert.equal(
    cells.flat().reduce((sum, value) => sum + value, 0),
    blame.reduce((sum, row) => sum + row.waited, 0),
  );
  assert.deepEqual([victims.length, victims.at(-1), restOfVictims], [6, "rest", 12]);
  assert.deepEqual([culprits.length, culprits.at(-1), restOfCulprits], [5, "rest", 10]);
});

test("waits that gather at a switch interval are told in words", () => {
  const histogram = emptyHistogram();
  for (let i = 0; i < 40; i++) count(histogram, 5_100_000, 1e-3);
  for (let i = 0; i < 40; i++) count(histogram, 20_000, 1e-3);
  const lengths = {
    title: "Waits",
    noun: ["wait", "waits"] as [string, string],
    histogram,
    colour: "wait" as const,
  };
  const scale = { unitNs: 1, switchIntervalUs: 5000, byTime: true };
  assert.match(
    inWords(lengths, scale),
    /^80 waits, 205ms together\. 40 last about one switch interval/,
  );
});

test("the timeline in words gives shares of the same time as the bar above it", () => {
  const figures = {
    span: 2e9,
    startup: 1e9,
    startupHeld: 0.9e9,
    held: 1.5e9,
    contended: 0.4e9,
    threads: [],
  } as unknown as Figures;
  assert.equal(
    timelineInWords("The whole run", figures),
    "The whole run: the GIL was held 60% of the time and contended 40%; this leaves out the first 1.00s, " +
      "when there was one thread. .",
  );
});
