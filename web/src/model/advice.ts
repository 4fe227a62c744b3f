/** What to do about a trace, as docs/advise.md has it, as far as the page shows it. */

/** What a piece of advice is predicted to gain. */
export interface Gain {
  measure: string;
  unit: string;
  before: number;
  after: number;
  low: number;
  high: number;
  saved_s_per_s: number;
}

/** A number that the trace shows. */
export interface Evidence {
  what: string;
  value: number;
  unit: string;
}

/** A piece of advice. */
export interface Advice {
  kind: string;
  cause: string | null;
  text: string;
  subject: { pid: number | null; gil: number | null };
  action: { shell: string | null; code: string | null };
  gain: Gain | null;
  confidence: { level: string; because: string };
  evidence: Evidence[];
  /** The place of a better piece that asks for the same in another process. */
  same_as: number | null;
}

/** All of it, best first. */
export interface Advised {
  advice: Advice[];
  /** What was tried in the simulation, and gains too little. */
  rejected: Advice[];
  /** At how many GILs threads wait for which no remedy was looked for. */
  gils_left_out: number;
}

/** Findings whose own advice is a policy or processes: what is predicted says more. */
const SAID_AGAIN = new Set(["convoy", "hog", "unfair", "none"]);

/** Whether advice about the same GIL says what the advice of this finding does. */
export function isRepeated(
  finding: { kind: string; pid?: number | null; gil?: number | null },
  advised: Advised | null | undefined,
): boolean {
  if (!advised || !SAID_AGAIN.has(finding.kind)) return false;
  return advised.advice.some(
    ({ kind, subject }) =>
      kind !== "not-the-gil" &&
      subject.pid === (finding.pid ?? null) &&
      subject.gil === (finding.gil ?? null),
  );
}
