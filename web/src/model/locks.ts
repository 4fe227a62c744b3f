/** What threads waited for in locks of the program, off the GIL. */

import type { ParkedAt, ProcessReport } from "./report";

/** Who waited for less than this part of the time does not wait for locks. */
const LEAST = 0.01;

/** The waits for locks that threads took in turn, longest first. */
export function contended({ lock_waits: waits, duration_s: seconds }: ProcessReport): ParkedAt[] {
  return (waits ?? []).filter((it) => it.contended && it.waited_s >= LEAST * (seconds ?? 0));
}

/** What the locks of these waits are called: 1 is that of the first. */
export function lockNumbers(waits: ParkedAt[]): Map<ParkedAt["lock"], number> {
  const numbers = new Map<ParkedAt["lock"], number>();
  for (const { lock } of waits) if (!numbers.has(lock)) numbers.set(lock, numbers.size + 1);
  return numbers;
}
