/** The timeline in words, for those who cannot see it. */

import { shared, type Figures } from "../../model/figures";
import { printable } from "../../units/names";
import { duration, plural, share } from "../../units/numbers";

/** How many threads are told of. */
const THREADS = 5;

/** What the timeline shows of a time, `stretch`, in sentences. */
export function inWords(stretch: string, figures: Figures): string {
  const { threads, span } = figures;
  const told = threads.slice(0, THREADS).map((thread) => {
    const name = printable(thread.name) || `thread ${thread.tid ?? ""}`;
    return `${name} held ${share(thread.held, span)} and waited ${duration(thread.waited)}`;
  });
  const more = threads.length - told.length;
  const busy = shared(figures);
  const left = busy.isShorter
    ? `; this leaves out the first ${duration(figures.startup)}, when there was one thread`
    : "";
  return (
    `${stretch}: the GIL was held ${share(busy.held, busy.span)} of the time and contended ` +
    `${share(figures.contended, busy.span)}${left}. ${told.join("; ")}` +
    `${more > 0 ? `; and ${plural(more, "more thread")}` : ""}.`
  );
}
