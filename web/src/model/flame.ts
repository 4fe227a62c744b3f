/** The flame graph "what held the GIL while somebody waited". */

import type { Stacks } from "../format/summary";
import { family } from "../units/names";
import { pieceIn, type Range } from "./range";
import { endOfHold, framesOf, type Samples } from "./samples";

/** A function, or a thread, with all that it called. */
export interface FlameNode {
  label: string;
  /** The file of the function, or the library of a native one; "" for a thread. */
  file: string;
  /** The line that ran, 0 if several did. */
  line: number;
  kind: "all" | "thread" | "python" | "user" | "native";
  /** What others waited while this was on the stack of the holder, in units. */
  waited: number;
  children: FlameNode[];
}

/** What else is known of the range. */
export interface Blamed {
  range: Range;
  /** By lane, what others waited for it in the range. */
  waited: ArrayLike<number>;
  /** By lane, the part of that which they waited in its long holds. */
  longWaited: ArrayLike<number>;
  /** From which length on a hold is long. */
  long: number;
  /** How much of the time of each waiter a look stands for at most. */
  lookFor: number;
}

/** The tree, and what it is made of. */
export interface Flame {
  root: FlameNode;
  /** Looks that stand for short holds, and long holds that were sampled. */
  looks: number;
  longHolds: number;
}

/**
 * The tree of the samples, outermost frames first, below the threads that held (those of a pool together).
 *
 * A long hold weighs what others waited during it. Short holds are too many to be looked at one by
 * one: what was waited for a lane in these is spread over the looks at it that were taken at regular
 * times, by how many threads waited then.
 */
export function flame(
  samples: Samples,
  stacks: Stacks,
  names: readonly string[],
  blamed: Blamed,
): Flame {
  const { range } = blamed;
  const root = node("", "", 0, "all");
  const made: Flame = { root, looks: 0, longHolds: 0 };
  const labels = groupsOf(names);
  const put = (lane: number, sample: number, weight: number): void => {
    if (!(weight > 0)) return;
    root.waited += weight;
    const thread = child(root, labels[lane] ?? "", "", 0, "thread");
    add(thread, stacks, (samples.stack[sample] as number) - 1, weight);
  };
  const long = new Map<number, number>();
  const looks = new Map<number, number[]>();
  const short: SampledHold[] = [];
  for (let first = 0; first < samples.count;) {
    const last = endOfHold(samples, first);
    const hold = sampledHold(samples, first, last, range);
    const isLong = (samples.length[first] as number) >= blamed.long;
    if (isLong && hold.waited > 0 && hold.withStack.length) {
      long.set(hold.lane, (long.get(hold.lane) ?? 0) + hold.waited);
      made.longHolds++;
      for (const i of hold.withStack) put(hold.lane, i, hold.waited / hold.withStack.length);
    } else if (!isLong) {
      const fair = hold.withStack.filter((i) => samples.waiters[i] && isIn(range, samples, i));
      const its = looks.get(hold.lane);
      if (its) its.push(...fair);
      else looks.set(hold.lane, fair);
      if (hold.waited > 0) short.push(hold);
    }
    first = last;
  }
  for (const [lane, its] of looks) {
    const waiters = its.reduce((sum, i) => sum + (samples.waiters[i] as number), 0);
    const inLong = Math.max(blamed.longWaited[lane] ?? 0, long.get(lane) ?? 0);
    const waited = Math.max((blamed.waited[lane] ?? 0) - inLong, 0);
    const each = waiters ? Math.min(waited / waiters, blamed.lookFor) : 0;
    if (each > 0) made.looks += its.length;
    for (const i of its) put(lane, i, each * (samples.waiters[i] as number));
  }
  for (const { lane, waited, withStack } of short) {
    // Where there was no look, a short hold that was sampled stands for itself.
    if (looks.get(lane)?.length) continue;
    for (const i of withStack) put(lane, i, waited / withStack.length);
  }
  sort(root);
  return made;
}

/** By lane its name, or that of its family, if there are others of that. */
function groupsOf(names: readonly string[]): string[] {
  const stems = names.map(family);
  const count = new Map<string, number>();
  for (const stem of stems) count.set(stem, (count.get(stem) ?? 0) + 1);
  return names.map((name, lane) => {
    const stem = stems[lane] ?? "";
    return (count.get(stem) ?? 0) > 1 ? stem : name;
  });
}

interface SampledHold {
  lane: number;
  /** What others waited during its piece in the range. */
  waited: number;
  /** Its samples that have a stack. */
  withStack: number[];
}

function sampledHold(samples: Samples, first: number, last: number, range: Range): SampledHold {
  const begin = samples.begin[first] as number;
  const length = samples.length[first] as number;
  const withStack: number[] = [];
  for (let i = first; i < last; i++) if (samples.stack[i]) withStack.push(i);
  const part = length > 0 ? pieceIn(range, begin, begin + length) / length : 0;
  return {
    lane: samples.lane[first] as number,
    waited: (samples.waited[first] as number) * part,
    withStack,
  };
}

function isIn(range: Range, samples: Samples, sample: number): boolean {
  const at = (samples.begin[sample] as number) + (samples.at[sample] as number);
  return at >= range.from && at < range.to;
}

function add(thread: FlameNode, stacks: Stacks, stack: number, weight: number): void {
  let at = thread;
  at.waited += weight;
  for (const frame of framesOf(stacks, stack).reverse()) {
    const kind = frame.isNative ? "native" : frame.isUser ? "user" : "python";
    at = child(at, frame.function, frame.isNative ? frame.library : frame.file, frame.line, kind);
    at.waited += weight;
  }
}

function child(
  parent: FlameNode,
  label: string,
  file: string,
  line: number,
  kind: FlameNode["kind"],
): FlameNode {
  const found = parent.children.find((it) => it.label === label && it.file === file);
  if (found) {
    if (found.line !== line) found.line = 0;
    return found;
  }
  const made = node(label, file, line, kind);
  parent.children.push(made);
  return made;
}

function node(label: string, file: string, line: number, kind: FlameNode["kind"]): FlameNode {
  return { label, file, line, kind, waited: 0, children: [] };
}

function sort(parent: FlameNode): void {
  parent.children.sort((one, other) => other.waited - one.waited);
  parent.children.forEach(sort);
}
