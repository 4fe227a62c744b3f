/** What the threads of a free-threaded Python slept for while it had no GIL, in words. */

import type { ParkedAt, ParkedThread, Parks, Waker } from "./report";
import { duration, grouped, plural, share } from "../units/numbers";

/** The heads of columns, by cause, in their order. */
export const CAUSES: Record<string, string> = {
  object: "objects",
  lock: "own locks",
  internal: "internal",
  pause: "pauses",
  stopping: "stopping",
  event: "events",
};

/** How often all threads were stopped; `seconds` is how long the process was recorded. */
export function saidOfPauses({ pauses }: Parks, seconds: number): string {
  const said = `${plural(pauses.count, "pause")} of the world`;
  if (!pauses.count) return `${said}.`;
  const inAll = `${duration(pauses.stopped_s * 1e9)} in all (${share(pauses.stopped_s, seconds)})`;
  const most = `${duration(pauses.max_ms * 1e6)} at most`;
  const { collections: count } = pauses;
  const were = count === 1 ? "was a garbage collection" : "were garbage collections";
  const collections = count ? `; ${grouped(count)} of them ${were}` : "";
  return `${said}, ${inAll}, ${most}${collections}.`;
}

/** The waits that are worth a row: for somebody else, and not for something to happen. */
export function waitsForOthers(parks: Parks): ParkedAt[] {
  return parks.waits.filter((wait) => wait.cause !== "event" && !isItsOwn(wait));
}

/** Whether the thread mostly woke itself: it let go of that lock itself, to park. */
function isItsOwn({ tid, waited_s: waited, wakers }: ParkedAt): boolean {
  const own = wakers.filter((waker) => waker.tid === tid);
  return own.reduce((sum, waker) => sum + waker.waited_s, 0) > waited / 2;
}

/** What a thread waited for. */
export function waitedFor({ cause, of }: ParkedAt): string {
  switch (cause) {
    case "object":
      return `the lock of one ${of ?? "object"}`;
    case "lock":
      return `one ${of ?? "lock of the program"}`;
    case "pause":
      return "a pause of the world";
    case "stopping":
      return "all others to stop";
    default:
      return "a lock of the interpreter or an extension";
  }
}

/** `app.py:7`, and from which line of the user's own that was called if it is another. */
export function lineOf(frame: string, users: string | null): string {
  const place = frame.slice(frame.lastIndexOf(" (") + 2).replace(/\)$/, "");
  const line = place.slice(place.lastIndexOf("/") + 1);
  return users === null || users === frame ? line : `${line} from ${lineOf(users, null)}`;
}

/** Who woke a thread, for which part of its wait, and from where. */
export function wokenBy(waker: Waker, wait: ParkedAt): string {
  const who = waker.tid === wait.tid ? "itself" : waker.name || `thread-${waker.tid ?? "?"}`;
  const at = waker.frame ? ` (${lineOf(waker.frame, waker.user_frame ?? null)})` : "";
  const known = waker.tid === null ? "unknown" : `${who}${at}`;
  return `${known} ${share(waker.waited_s, wait.waited_s)}`;
}

/** How often a thread parked in all. */
export function parksOf({ causes }: ParkedThread): number {
  return causes.reduce((sum, cause) => sum + cause.parks.count, 0);
}
