/** Makes elements. Texts become text nodes and nothing else, so no name can be read as HTML. */

import { printable, shortened } from "../units/names";

/** What an element may contain. */
export type Child = Node | string | number | null | undefined | false;

type Properties = Record<string, string | number | boolean | EventListener | null | undefined>;

/**
 * An element with `properties` and `children`. A property whose name begins with `on` is a
 * listener, `true` an attribute without a value; null, undefined and false leave it out.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  append(made, children);
  return made;
}

/** Puts `children` into `parent`, after what is there. */
export function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === "number" ? String(child) : child);
  }
}

/** Puts `children` into `parent`, in the place of what is there. */
export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * A name from another program: nothing invisible in it, and isolated, so that its direction of
 * writing stays its own.
 */
export function name(text: string, className?: string): HTMLElement {
  return element("bdi", { class: className ?? "name" }, printable(text));
}

/** The same, cut in its middle where it is longer than `most` characters, or a phone's `few`. */
export function shortName(text: string, most: number, few: number): HTMLElement {
  const whole = printable(text);
  const shown = shortened(whole, matchMedia("(max-width: 40rem)").matches ? few : most);
  return element("bdi", { class: "name", title: shown === whole ? null : whole }, shown);
}
