/** What is told once for processes that are alike: the workers of a server. */

/** Processes that are named, of those for which the same is told. */
const NAMED = 5;

/** Each piece that says something else, and the processes of which others say the same. */
export function withRepeats<Told extends { same_as?: number | null }>(
  all: readonly Told[],
  pidOf: (told: Told) => number | null | undefined,
): { told: Told; pids: number[] }[] {
  const pids = new Map<number, Set<number>>();
  all.forEach((told, place) => {
    const pid = pidOf(told);
    if (typeof told.same_as !== "number") pids.set(place, new Set());
    else if (typeof pid === "number") pids.get(told.same_as)?.add(pid);
  });
  return all.flatMap((told, place) => {
    const others = pids.get(place);
    return others ? [{ told, pids: [...others] }] : [];
  });
}

/** For which other processes it is told. */
export function theSame(pids: readonly number[]): string {
  const more = pids.length > NAMED ? ` and ${pids.length - NAMED} more` : "";
  return `the same for pid ${pids.slice(0, NAMED).join(", ")}${more}`;
}
