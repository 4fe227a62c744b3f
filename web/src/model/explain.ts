/** Explains one hold or wait: who held meanwhile, what that one did. */

import type { Holds, Loose } from "../format/holds";
import { eachHolder, NOBODY } from "./blame";
import type { Explanation, Party } from "./explanation";
import { lowerBound, touches, type Range } from "./range";
import { sampled, type Known } from "./samples";

/** Where the events are. */
export interface Source {
  chunksOf(range: Range): number[];
  holds(chunks: readonly number[]): Promise<Holds>;
  loose(): Promise<Loose>;
  readonly gil: { chunks: readonly { from: number; to: number; waits_from: number }[] };
}

interface Thing {
  kind: "hold" | "wait";
  begin: number;
  end: number;
  /** The hold, or the one that the wait led to; -1 if none did. */
  hold: number;
}

/** How many parties are told. */
const PARTIES = 50;

/** The longest thing that `lane` did in `range`; null if it was idle. */
export async function explain(
  known: Known,
  source: Source,
  lane: number,
  range: Range,
): Promise<Explanation | null> {
  const holds = await source.holds(source.chunksOf(range));
  const loose = await source.loose();
  let best: Thing | null = null;
  for (const thing of thingsOf(holds, loose, lane)) {
    if (!touches(range, thing.begin, thing.end) && thing.begin !== range.from) continue;
    if (!best || thing.end - thing.begin > best.end - best.begin) best = thing;
  }
  return best && explained(known, source, lane, best);
}

/** The next thing that `lane` began after `at`, or the last that it ended before. */
export async function neighbour(
  known: Known,
  source: Source,
  lane: number,
  at: number,
  step: 1 | -1,
): Promise<Explanation | null> {
  const loose = await source.loose();
  const { chunks } = source.gil;
  const order = Array.from(chunks.keys());
  for (const index of step > 0 ? order : order.reverse()) {
    const chunk = chunks[index];
    if (!chunk || (step > 0 ? chunk.to <= at : chunk.waits_from >= at)) continue;
    const things = [...thingsOf(await source.holds([index]), loose, lane)].filter((thing) =>
      step > 0 ? thing.begin >= at : thing.end <= at,
    );
    if (things.length) {
      const found = things.reduce((one, other) =>
        (step > 0 ? one.begin <= other.begin : one.end >= other.end) ? one : other,
      );
      return explain(known, source, lane, { from: found.begin, to: found.end });
    }
  }
  return null;
}

function* thingsOf(holds: Holds, loose: Loose, lane: number): Generator<Thing> {
  for (let i = 0; i < holds.count; i++) {
    if (holds.lane[i] !== lane) continue;
    const begin = holds.begin[i] as number;
    if (holds.waited[i]) {
      yield { kind: "wait", begin: holds.waitBegin[i] as number, end: begin, hold: i };
    }
    yield { kind: "hold", begin, end: holds.end[i] as number, hold: i };
  }
  for (let i = 0; i < loose.lane.length; i++) {
    if (loose.lane[i] !== lane) continue;
    yield { kind: "wait", begin: loose.begin[i] as number, end: loose.end[i] as number, hold: -1 };
  }
}

/** Tells all of `thing`; it may reach beyond what was looked at to find it. */
async function explained(
  known: Known,
  source: Source,
  lane: number,
  thing: Thing,
): Promise<Explanation> {
  const range = { from: thing.begin, to: thing.end };
  const holds = await source.holds(source.chunksOf(range));
  const loose = await source.loose();
  const isWait = thing.kind === "wait";
  const parties = isWait ? holdersIn(holds, range) : waitersIn(holds, loose, range, lane);
  const longest = isWait ? parties.find((party) => party.lane !== NOBODY) : null;
  const asks = asksIn(holds, range, lane, isWait);
  const hold = isWait ? -1 : indexOf(holds, lane, thing.begin);
  const extra = hold < 0 ? -1 : holds.extras.hold.indexOf(hold);
  const cpu = holds.extras.cpu[extra];
  return {
    kind: thing.kind,
    lane,
    begin: thing.begin,
    end: thing.end,
    how: hold < 0 ? null : (holds.how[hold] as number),
    isAnswered: thing.hold >= 0,
    cpu: cpu ? cpu - 1 : null,
    notRun: holds.extras.notRun[extra] ?? null,
    parties: parties.slice(0, PARTIES),
    asks: asks.length,
    firstAsk: asks[0] ?? null,
    ...sampled(known, isWait ? longest : { lane, from: thing.begin, to: thing.end }),
  };
}

function indexOf(holds: Holds, lane: number, begin: number): number {
  for (let i = lowerBound(holds.begin, begin, holds.count); holds.begin[i] === begin; i++) {
    if (holds.lane[i] === lane) return i;
  }
  return -1;
}

function holdersIn(holds: Holds, range: Range): Party[] {
  const parties = new Parties();
  let rest = range.to - range.from;
  const last = lowerBound(holds.begin, range.to, holds.count) - 1;
  eachHolder(holds, range.from, range.to, last, (hold, piece) => {
    const [begin, end] = [holds.begin[hold] as number, holds.end[hold] as number];
    parties.add(holds.lane[hold] as number, piece, begin, end);
    rest -= piece;
  });
  if (rest > 0) parties.add(NOBODY, rest, range.from, range.to);
  return parties.longestFirst();
}

function waitersIn(holds: Holds, loose: Loose, range: Range, holder: number): Party[] {
  const parties = new Parties();
  const add = (lane: number, begin: number, end: number): void => {
    const piece = Math.min(end, range.to) - Math.max(begin, range.from);
    if (piece > 0 && lane !== holder) parties.add(lane, piece, begin, end);
  };
  for (let i = 0; i < holds.count; i++) {
    if (!holds.waited[i]) continue;
    add(holds.lane[i] as number, holds.waitBegin[i] as number, holds.begin[i] as number);
  }
  for (let i = 0; i < loose.lane.length; i++) {
    add(loose.lane[i] as number, loose.begin[i] as number, loose.end[i] as number);
  }
  return parties.longestFirst();
}

function asksIn(holds: Holds, range: Range, lane: number, byIt: boolean): number[] {
  const { at, lane: asker } = holds.asks;
  const found: number[] = [];
  for (let i = lowerBound(at, range.from); i < at.length && (at[i] as number) <= range.to; i++) {
    if ((asker[i] === lane) === byIt) found.push(at[i] as number);
  }
  return found;
}

/** Times by lane, each with its longest piece. */
class Parties {
  readonly #parties = new Map<number, Party & { longest: number }>();

  add(lane: number, time: number, from: number, to: number): void {
    const known = this.#parties.get(lane);
    if (!known) {
      this.#parties.set(lane, { lane, time, from, to, longest: time });
      return;
    }
    known.time += time;
    if (time > known.longest) Object.assign(known, { longest: time, from, to });
  }

  longestFirst(): Party[] {
    const rows = [...this.#parties.values()].sort((one, other) => other.time - one.time);
    return rows.map(({ longest: _, ...party }) => party);
  }
}
