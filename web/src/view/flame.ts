/** The flame graph: what held the GIL while somebody waited. Nested lists, so it can be read, too. */

import type { Flame, FlameNode } from "../model/flame";
import { duration, plural, share } from "../units/numbers";
import { printable } from "../units/names";
import { element, name, replace } from "./dom";

/** Parts of the whole that are too small to be seen are left out. */
const LEAST = 0.002;
/** How deep stacks are shown. */
const DEPTH = 80;

/** Fills `place` with the tree of `flame`; `waited` is what was waited in all, in ns. */
export function showFlame(place: HTMLElement, flame: Flame, waited: number, unitNs: number): void {
  const { root } = flame;
  if (!(root.waited > 0)) {
    const text = waited > 0 ? "No stack was taken while threads waited." : "Nobody waited.";
    replace(place, element("p", { class: "quiet" }, text));
    return;
  }
  const known = root.waited * unitNs;
  const path: FlameNode[] = [];
  const area = element("div", { class: "flame" });
  const render = (): void => {
    const top = path.at(-1) ?? root;
    const list = element("ul", { class: "root" });
    const shown = path.length ? [top] : top.children;
    for (const node of shown) add(list, node, top.waited, 0);
    const back = element(
      "button",
      {
        type: "button",
        onclick: () => {
          path.length = 0;
          render();
        },
      },
      "Show all",
    );
    replace(area, path.length ? back : null, list);
  };
  const add = (list: HTMLElement, node: FlameNode, whole: number, depth: number): void => {
    if (node.waited < whole * LEAST || depth > DEPTH) return;
    const text = `${labelOf(node)} ${placeOf(node)}: ${duration(node.waited * unitNs)}, ${share(node.waited, root.waited)}`;
    const item = element("li");
    const zoom = (): void => {
      if (path.at(-1) === node) path.length = 0;
      else path.push(node);
      render();
    };
    item.style.width = `${Math.min((node.waited / whole) * 100, 100)}%`;
    item.append(
      element(
        "button",
        { type: "button", class: `frame ${node.kind}`, title: printable(text), onclick: zoom },
        name(labelOf(node), "function"),
        " ",
        name(placeOf(node).slice(node.file.lastIndexOf("/") + 1), "place"),
        element("span", { class: "unseen" }, ` ${duration(node.waited * unitNs)}`),
      ),
    );
    const children = element("ul");
    for (const child of node.children) {
      add(children, child, node.waited, depth + 1);
    }
    if (children.childElementCount) item.append(children);
    list.append(item);
  };
  render();
  replace(
    place,
    element(
      "p",
      { class: "quiet" },
      `Explains ${duration(known)}, ${share(known, waited)} of all waits, by ` +
        `${madeOf(flame)}. The width is the time that others waited meanwhile.`,
    ),
    element(
      "p",
      { class: "legend" },
      ...(["user", "python", "native"] as const).flatMap((kind) => [
        element("i", { class: `swatch frame ${kind}` }),
        { user: "your code ", python: "libraries ", native: "native code " }[kind],
      ]),
    ),
    area,
  );
}

/** Native code may have no name. */
function labelOf({ label, kind }: FlameNode): string {
  return label || (kind === "native" ? "a function in" : kind === "thread" ? "thread" : "?");
}

/** What the tree was made of, in words. */
function madeOf({ looks, longHolds }: Flame): string {
  const parts = [
    longHolds && `the stacks of ${plural(longHolds, "long hold")}`,
    looks && `${plural(looks, "look")} at ${longHolds ? "the holders of short ones" : "who held"}`,
  ].filter(Boolean);
  return parts.join(" and ") || "the stacks of a few short holds";
}

/** The file and the line, if it is one. */
function placeOf({ file, line }: FlameNode): string {
  return line ? `${file}:${line}` : file;
}
