/** The names beside the lanes: only those that can be seen are in the document. */

import type { Explanation } from "../../model/explanation";
import type { ShownGil } from "../context";
import { element, shortName } from "../dom";
import { swatch } from "../threads";
import { printable } from "../../units/names";
import { LANE } from "./measures";

/** The most characters of a name: those of a pool differ at their end. */
const WIDE = 17;
const NARROW = 10;

/** A list as long as all lanes, with the names of those in view. */
export class Labels {
  /** What goes into the scroller. */
  readonly element = element("ol", { class: "labels", "aria-hidden": "true" });
  #gil: ShownGil | null = null;
  readonly #items = new Map<number, HTMLElement>();

  /** Shows the lanes of another GIL. */
  show(gil: ShownGil): void {
    this.#gil = gil;
    this.#items.clear();
    this.element.replaceChildren();
    this.element.style.height = `${gil.order.length * LANE}px`;
  }

  /** Shows the names from place `first` to before `last`. */
  place(first: number, last: number, current: number | null, picked: Explanation | null): void {
    const gil = this.#gil;
    if (!gil) return;
    for (const [place, item] of this.#items) {
      if (place >= first && place < last) continue;
      item.remove();
      this.#items.delete(place);
    }
    for (let place = first; place < Math.min(last, gil.order.length); place++) {
      const lane = gil.order[place] as number;
      const item = this.#items.get(place) ?? this.#added(gil, place, lane);
      const isParty = picked?.parties.some((party) => party.lane === lane) ?? false;
      item.classList.toggle("current", lane === current || lane === picked?.lane);
      item.classList.toggle("party", isParty);
    }
  }

  #added(gil: ShownGil, place: number, lane: number): HTMLElement {
    const label = gil.labels[lane] ?? "";
    const item = element("li", {}, swatch(gil, lane), shortName(label, WIDE, NARROW));
    item.title = printable(label);
    item.style.top = `${place * LANE}px`;
    this.element.append(item);
    this.#items.set(place, item);
    return item;
  }
}
