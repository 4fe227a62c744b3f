/** Looks for threads and for lines of code. */

import type { Lanes, Stacks } from "../format/summary";
import { framesOf, placeOf, type Samples } from "./samples";

/** Something that was found, and where it is. */
export interface Found {
  kind: "thread" | "code";
  gil: number;
  lane: number;
  label: string;
  place: string;
  /** Of code: the hold in which it was seen that others waited for most. */
  from: number | null;
  to: number | null;
  /** Of code: in how many samples. */
  samples: number;
}

/** All of one GIL that can be found. */
export interface Searched {
  gil: number;
  lanes: Lanes;
  samples: Samples;
}

/** How many are told of each kind. */
const MOST = 50;

/** Threads whose name or tid has `text` in it, then code whose function or file has. */
export function search(text: string, gils: readonly Searched[], stacks: Stacks): Found[] {
  const wanted = text.trim().toLocaleLowerCase();
  if (!wanted) return [];
  const has = (value: string): boolean => value.toLocaleLowerCase().includes(wanted);
  const threads: Found[] = [];
  const code = new Map<string, Found & { worst: number }>();
  const frames = stacks.stacks.map((_, index) =>
    framesOf(stacks, index)
      .map((frame) => ({ label: frame.function, place: placeOf(frame) }))
      .filter(({ label, place }) => has(label) || has(place)),
  );
  for (const { gil, lanes, samples } of gils) {
    lanes.name.forEach((name, lane) => {
      const tid = lanes.tid[lane];
      if (threads.length < MOST && tid !== null && (has(name) || String(tid) === wanted)) {
        const nowhere = { from: null, to: null, samples: 0 };
        threads.push({ kind: "thread", gil, lane, label: name, place: `tid ${tid}`, ...nowhere });
      }
    });
    for (let i = 0; i < samples.count; i++) {
      const stack = samples.stack[i] as number;
      for (const { label, place } of stack ? (frames[stack - 1] ?? []) : []) {
        const key = `${gil}\0${label}\0${place}`;
        const waited = samples.waited[i] as number;
        const from = samples.begin[i] as number;
        const where = {
          lane: samples.lane[i] as number,
          from,
          // Of a look at a short hold the length may not be known.
          to: from + Math.max(samples.length[i] as number, 1),
        };
        const known = code.get(key);
        if (!known) {
          code.set(key, { kind: "code", gil, label, place, samples: 1, worst: waited, ...where });
        } else {
          known.samples++;
          if (waited > known.worst) Object.assign(known, where, { worst: waited });
        }
      }
    }
  }
  const lines = [...code.values()].sort((one, other) => other.worst - one.worst);
  return [...threads, ...lines.slice(0, MOST).map(({ worst: _, ...found }) => found)];
}
