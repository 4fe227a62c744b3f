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

/** `text` in at most `most` characters, cut in the middle: `ThreadPoo…or-0_3`. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  if (characters.length <= most) return text;
  const tail = Math.round((most - 1) * 0.4);
  const head = most - 1 - tail;
  return characters.slice(0, head).join("") + "…" + characters.slice(-tail).join("");
}
