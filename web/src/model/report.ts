/** The report of schema 1 (docs/report-schema.md), as far as the page shows it. */

/** A party to a wait. */
export type Who = number | "others" | "unknown" | null;

/** How long the holds or the waits of a thread were. */
export interface Distribution {
  count: number;
  mean_us: number;
  p50_us: number;
  p99_us: number;
  max_us: number;
}

/** One thread, at one GIL. */
export interface ThreadRow {
  tid: number;
  name: string;
  main?: boolean;
  cpu_s: number | null;
  held_s: number;
  waited_s: number;
  holds: Distribution;
  waits: Distribution;
  gaps: { mean_ms: number; max_ms: number };
  voluntary: number;
  forced: number;
  drop_requests?: number;
}

/** How long a victim waited while a culprit held. */
export interface BlameRow {
  victim: Who;
  victim_name?: string | null;
  culprit: Who;
  culprit_name?: string | null;
  waited_s: number;
}

/** The native function that most samples of a hold show. */
export interface Native {
  function: string | null;
  library: string;
  innermost: string | null;
  innermost_library: string;
}

/** A hold that was at least the blame time long. */
export interface LongHold {
  tid: number;
  name?: string;
  start_s: number;
  duration_ms: number;
  contended?: boolean;
  waiters_max?: number;
  waited_s?: number;
  cpu_ms?: number | null;
  not_run_ms?: number | null;
  stack: string[];
  user_frame?: string | null;
  samples?: number;
  native?: Native | null;
  stack_missing?: string | null;
}

/** One GIL of a process. */
export interface GilReport {
  gil?: number;
  held_s: number;
  startup_held_s?: number;
  contended_s: number;
  handoffs: number;
  voluntary?: number;
  forced: number;
  wanting_mean: number;
  threads: ThreadRow[];
  others?: { threads: number; held_s: number; waited_s: number } | null;
  blame: BlameRow[];
  long_holds: LongHold[];
  long_holds_count?: number;
}

/** How a thread was woken by another, or by itself; by whom is unknown after a timeout. */
export interface Waker {
  tid: number | null;
  name: string | null;
  count: number;
  waited_s: number;
  frame?: string | null;
  user_frame?: string | null;
}

/** The waits of a thread for one lock, without a GIL or off it. */
export interface ParkedAt {
  tid: number;
  name: string;
  cause: string;
  of: string | null;
  /** The same for all that waited for the same lock. */
  lock?: number | null;
  /** Whether two threads slept for it at once. */
  together?: boolean;
  /** Whether threads took it in turn. */
  contended?: boolean;
  count: number;
  waited_s: number;
  max_ms: number;
  places: { frame: string; user_frame?: string | null; waited_s: number }[];
  wakers: Waker[];
}

/** What a thread waited for without a GIL, by cause. */
export interface ParkedThread {
  tid: number;
  name: string;
  causes: { cause: string; waited_s: number; parks: { count: number } }[];
}

/** The waits of a process without a GIL. */
export interface Parks {
  threads: ParkedThread[];
  waits: ParkedAt[];
  pauses: { count: number; stopped_s: number; max_ms: number; collections?: number };
}

/** One process image. */
export interface ProcessReport {
  pid: number;
  argv: string[];
  python?: string;
  started_s?: number;
  duration_s?: number;
  startup_s?: number | null;
  not_recorded?: string | null;
  free_threaded?: { gil: string | null; gil_on_s: number | null } | null;
  parks?: Parks | null;
  lock_waits?: ParkedAt[];
  policy?: string | null;
  switch_interval_ms?: number | null;
  gils: GilReport[];
}

/** A stretch of time, in seconds since the start of the trace. */
export interface Window {
  start_s: number;
  end_s: number;
  started_at: string | null;
}

/** What the numbers mean, in a sentence. The other keys depend on the kind. */
export interface Finding {
  kind: string;
  text: string;
  advice?: string | null;
  pid?: number | null;
  gil?: number | null;
  threads?: number[];
  cost_s?: number;
  scope?: "run" | "window";
  window?: Window | null;
  worst?: (Window & { cost_s: number }) | null;
  /** The place of a finding before it that tells the same of another process. */
  same_as?: number | null;
  [more: string]: unknown;
}

/** The report without its processes. */
export interface Report {
  schema: number;
  python: string;
  duration_s: number;
  lost_events: number;
  findings: Finding[];
  notes?: string[];
  started_at?: string | null;
  part?: (Window & { cut_holds: number; cut_waits: number }) | null;
  other_processes?: { processes: number; held_s: number; waited_s: number } | null;
}

/** The whole report. */
export interface FullReport extends Report {
  processes: ProcessReport[];
}
