/** `window.ungil`: what tests and benchmarks use ("Hooks" in FORMAT.md). */

import type { Numbers } from "../model/numbers";
import type { Range } from "../model/range";
import type { Context } from "./context";

/** The hooks. */
export interface Hooks {
  /** Resolved when the first screen with its timeline has been painted. */
  ready: Promise<void>;
  /** `performance.now()` of the first paint. */
  painted: number;
  unchanged(): Promise<void>;
  numbers(gil: number, from: number, to: number): Promise<object>;
  view(gil: number, from: number, to: number): Promise<number>;
  step(gil: number, from: number, to: number): Promise<Step>;
}

/** How long a step of a zoom took, in ms. */
export interface Step {
  /** Until the new view had been drawn from what was there. */
  drawn: number;
  /** Until it had been drawn from the best data. */
  exact: number;
}

/** What draws. */
export interface Drawing {
  drawn(): Promise<void>;
  settled(): Promise<void>;
}

declare global {
  interface Window {
    ungil?: Hooks;
  }
}

/** Puts the hooks in place. `show` changes the view to a range of a GIL. */
export function offerHooks(
  context: Context,
  ready: Promise<void>,
  unchanged: () => Promise<void>,
  show: (gil: number, range: Range) => Promise<Drawing>,
): Hooks {
  const hooks: Hooks = {
    ready,
    painted: 0,
    unchanged,
    numbers: async (gil, from, to) => {
      const [numbers, lanes] = await Promise.all([
        context.client.ask("numbers", { gil, from, to }),
        context.client.ask("lanes", { gil }),
      ]);
      return told(numbers, lanes.tid, context.summary.unit_ns);
    },
    view: async (gil, from, to) => (await hooks.step(gil, from, to)).exact,
    step: async (gil, from, to) => {
      const start = performance.now();
      const drawing = await show(gil, { from, to });
      const passed = (): number => performance.now() - start;
      const [drawn, exact] = [drawing.drawn(), drawing.settled()];
      return { drawn: await drawn.then(passed), exact: await exact.then(passed) };
    },
  };
  window.ungil = hooks;
  return hooks;
}

/** Numbers in the report's units. */
function told(numbers: Numbers, tids: readonly (number | null)[], unitNs: number): object {
  const s = (units: number): number => (units * unitNs) / 1e9;
  const us = (units: number): number => (units * unitNs) / 1e3;
  const ms = (units: number): number => (units * unitNs) / 1e6;
  const threads = tids.map((tid, lane) => {
    const of = (name: keyof typeof numbers.lanes): number => numbers.lanes[name][lane] as number;
    const kept = (what: "unanswered" | "kept"): object => ({
      holds: of(`${what}Holds`),
      total_s: s(of(`${what}Sum`)),
      max_ms: ms(of(`${what}Max`)),
      waited_s: s(of(`${what}Waited`)),
    });
    return {
      tid,
      lane,
      held_s: s(of("held")),
      waited_s: s(of("waited")),
      holds: { count: of("holds"), max_us: us(of("maxHold")) },
      waits: {
        count: of("waits"),
        max_us: us(of("maxWait")),
        p50_us: us(of("p50Wait")),
        p99_us: us(of("p99Wait")),
      },
      gaps: { mean_ms: ms(of("gapSum") / Math.max(of("gaps"), 1)), max_ms: ms(of("gapMax")) },
      voluntary: of("voluntary"),
      forced: of("forced"),
      drop_requests: of("asks"),
      blocking: {
        calls: of("calls"),
        late: of("late"),
        late_s: s(of("lateSum")),
        late_p50_ms: ms(of("lateP50")),
        waited_s: s(of("callWaited")),
      },
      unanswered: kept("unanswered"),
      kept: kept("kept"),
      descheduled: {
        not_run_s: s(of("notRun")),
        max_ms: ms(of("notRunMax")),
        waited_s: s(of("notRunWaited")),
      },
    };
  });
  return {
    held_s: s(numbers.held),
    waited_s: s(numbers.waited),
    contended_s: s(numbers.contended),
    handoffs: numbers.handoffs,
    voluntary: numbers.voluntary,
    forced: numbers.forced,
    is_exact: numbers.isExact,
    threads,
    blame: numbers.blame.map(({ victim, culprit, waited }) => ({
      victim,
      culprit: culprit < 0 ? null : culprit,
      waited_s: s(waited),
    })),
    long_holds_count: numbers.longHoldsCount,
  };
}
