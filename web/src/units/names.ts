/** Names that come from other programs, made fit to be shown. */

// What is not seen, or would change how the text around it is read: controls, formats (among them
// all that turn the direction of writing), lone surrogates, private and unassigned characters,
// separators of lines.
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** `text` with everything invisible written out, as Python's `unicode_escape` does. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** Whether a terminal may be given `text`: nothing invisible is in it, but ends of lines. */
export function typeable(text: string): boolean {
  return printable(text.replaceAll("\n", "")) === text.replaceAll("\n", "");
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  if (short) return short;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** The last number of a name, with what comes before it and after it: it tells the threads of a family apart. */
const NUMBERED = /^(.*?)(\d+)(\D*)$/su;

/** What the threads of a family have in common: `pool-1_*`, `Thread-* (work)`. */
export function family(name: string): string {
  return name.replace(NUMBERED, "$1*$3");
}

/**
 * `text` in at most `most` characters, with the number that tells it from others like it: cut in the
 * middle (`ThreadPoo…or-0_3`), or behind that number if it comes early (`Thread-12 (proce…`).
 */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  if (characters.length <= most) return text;
  const [, before = "", number = "", after = ""] = NUMBERED.exec(text) ?? [];
  const usual = Math.round((most - 1) * 0.4);
  const numbered = Array.from(before + number);
  if (number && number.length + Array.from(after).length > usual && after) {
    // Of what follows, a letter or two say nothing.
    if (numbered.length + 5 <= most) return characters.slice(0, most - 1).join("") + "…";
    if (numbered.length <= most) return numbered.join("");
    return cut(numbered, most, Math.max(number.length, usual));
  }
  return cut(characters, most, usual);
}

/** The beginning of `characters` and, as far as there is room, so many of their end. */
function cut(characters: readonly string[], most: number, end: number): string {
  const tail = Math.min(end, most - 2);
  const head = most - 1 - tail;
  return characters.slice(0, head).join("") + "…" + characters.slice(-tail).join("");
}
