/** The flame graph "what held the GIL while somebody waited". */

import type { Stacks } from "../format/summary";
import { pieceIn, type Range } from "./range";
import { framesOf, type Samples } from "./samples";

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

/** The tree of the samples in `range`, outermost frames first, below the threads that held. */
export function flame(
  samples: Samples,
  stacks: Stacks,
  names: readonly string[],
  range: Range,
): FlameNode {
  const root = node("", "", 0, "all");
  for (let first = 0; first < samples.count;) {
    const last = endOfHold(samples, first);
    const lane = samples.lane[first] as number;
    const begin = samples.begin[first] as number;
    const length = samples.length[first] as number;
    const withStack = [];
    for (let i = first; i < last; i++) if (samples.stack[i]) withStack.push(i);
    const part = length > 0 ? pieceIn(range, begin, begin + length) / length : 0;
    const weight = ((samples.waited[first] as number) * part) / withStack.length;
    for (const i of withStack) {
      if (weight > 0) {
        const thread = child(root, names[lane] ?? "", "", 0, "thread");
        root.waited += weight;
        add(thread, stacks, (samples.stack[i] as number) - 1, weight);
      }
    }
    first = last;
  }
  sort(root);
  return root;
}

/** The index after the last sample of the same hold as sample `first`. */
export function endOfHold(samples: Samples, first: number): number {
  let last = first + 1;
  while (
    last < samples.count &&
    samples.begin[last] === samples.begin[first] &&
    samples.lane[last] === samples.lane[first]
  ) {
    last++;
  }
  return last;
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
