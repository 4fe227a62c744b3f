/** Colours for the canvas; the style sheet has them, for light, dark and paper. */

/** How many holders have a colour of their own; the last colour is everybody else's. */
export const HOLDER_COLOURS = 8;

/** What a canvas paints with. */
export interface Colours {
  paper: string;
  ink: string;
  quiet: string;
  faint: string;
  band: string;
  wait: string;
  notRun: string;
  mark: string;
  select: string;
  /** By holder; the last is everybody else's. */
  holders: string[];
}

let known: Colours | null = null;

/** The colours that are in force. */
export function colours(): Colours {
  return (known ??= read());
}

/** Looks them up again: the reader has switched between light and dark, or prints. */
export function forgetColours(): void {
  known = null;
}

function read(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: get("paper"),
    ink: get("ink"),
    quiet: get("quiet"),
    faint: get("faint"),
    band: get("band"),
    wait: get("wait"),
    notRun: get("not-run"),
    mark: get("ink"),
    select: get("select"),
    holders: Array.from({ length: HOLDER_COLOURS }, (_, index) => get(`holder-${index}`)),
  };
}
