/** The numbers of a finding for a selected time, instead of the run that its sentence is about. */

import type { Lanes } from "../format/summary";
import { duration, grouped, plural, share } from "../units/numbers";
import type { Numbers } from "./numbers";
import type { Finding } from "./report";

/** What a finding costs in the selected time, and its numbers in words. */
export interface FindingNumbers {
  /** Wait time that it explains, in units; null if that is not known. */
  cost: number | null;
  words: string;
}

/** The numbers of `finding`, which is about the GIL that `numbers` are of; null if it has none. */
export function findingNumbers(
  finding: Finding,
  numbers: Numbers,
  lanes: Lanes,
  unitNs: number,
): FindingNumbers | null {
  const tids = new Set(finding.threads ?? []);
  const its: number[] = [];
  lanes.tid.forEach((tid, lane) => {
    if (tid !== null && tids.has(tid)) its.push(lane);
  });
  const sum = (name: keyof Numbers["lanes"]): number =>
    its.reduce((all, lane) => all + (numbers.lanes[name][lane] as number), 0);
  const time = (units: number): string => duration(units * unitNs);
  // Several threads may have taken that at the same time.
  const inAll = its.length > 1 ? `summed over ${plural(its.length, "thread")}` : "in total";
  if (!numbers.isExact && finding.kind !== "hog" && finding.kind !== "none") return null;
  switch (finding.kind) {
    case "convoy":
      return {
        cost: sum("lateSum"),
        words: `${grouped(sum("late"))} of ${grouped(sum("calls"))} calls returned late, ${time(sum("lateSum"))} ${inAll}`,
      };
    case "hog": {
      const others = numbers.waited - sum("waited");
      return {
        cost: others,
        words: `it held ${share(sum("held"), numbers.held)} of the time that any thread held`,
      };
    }
    case "unfair": {
      const index = jain(its.map((lane) => numbers.lanes.held[lane] as number));
      return {
        cost: sum("waited"),
        words: `Jain index ${index.toFixed(2)} of the time that ${plural(its.length, "thread")} held`,
      };
    }
    case "native-hold":
      return {
        cost: sum("keptWaited"),
        words: `${plural(sum("keptHolds"), "hold")} went on for ${time(sum("keptSum"))} after requests`,
      };
    case "descheduled":
      return {
        cost: sum("notRunWaited"),
        words: `the kernel did not run its threads for ${time(sum("notRun"))} of ${time(sum("held"))} that they held`,
      };
    case "late-wakeups": {
      const free = numbers.blame.filter((row) => row.culprit < 0);
      const unheld = free.reduce((all, row) => all + row.waited, 0);
      return {
        cost: unheld,
        words: `nobody had the GIL for ${time(unheld)} of the ${time(numbers.waited)} that threads waited`,
      };
    }
    case "none":
      return {
        cost: numbers.waited,
        words: `held ${share(numbers.held, numbers.to - numbers.from)} of the time`,
      };
    default:
      return null;
  }
}

/** Jain's index of fairness: 1 for equal shares. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((all, value) => all + value, 0);
  const squares = shares.reduce((all, value) => all + value * value, 0);
  return squares > 0 ? (sum * sum) / (shares.length * squares) : 1;
}
