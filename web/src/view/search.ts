/** Search: threads by name or tid, code by function or file. */

import type { Found } from "../model/search";
import { plural } from "../units/numbers";
import type { Context } from "./context";
import { element, name, replace } from "./dom";

/** The field and what it found. */
export class Search {
  /** What goes into the page. */
  readonly element: HTMLElement;
  readonly #input = element("input", {
    type: "search",
    placeholder: "Search threads and code  /",
    "aria-label": "Search threads and code",
    "aria-controls": "found",
    autocomplete: "off",
    spellcheck: "false",
  });
  readonly #list = element("ol", { id: "found" });
  readonly #said = element("p", { class: "unseen", role: "status" });
  #asked = 0;

  /** `onPick` is called with what was chosen. */
  constructor(context: Context, onPick: (found: Found) => void) {
    this.#list.hidden = true;
    this.element = element(
      "div",
      { class: "search", role: "search" },
      this.#input,
      this.#list,
      this.#said,
    );
    this.#input.addEventListener("input", () => {
      void this.#find(context, onPick);
    });
    this.element.addEventListener("keydown", (event) => {
      this.#move(event);
    });
  }

  /** Puts the cursor into the field. */
  focus(): void {
    this.#input.focus();
    this.#input.select();
  }

  /** Whether it was open. */
  close(): boolean {
    const wasOpen = !this.#list.hidden || document.activeElement === this.#input;
    this.#list.hidden = true;
    this.#input.blur();
    return wasOpen;
  }

  async #find(context: Context, onPick: (found: Found) => void): Promise<void> {
    const text = this.#input.value;
    const asked = ++this.#asked;
    const found = await context.client.ask("search", { text });
    if (asked !== this.#asked) return;
    this.#list.hidden = !text.trim();
    this.#said.textContent = text.trim() ? `${found.length} found` : "";
    if (!found.length) {
      replace(this.#list, element("li", { class: "quiet" }, "No thread or code matches."));
      return;
    }
    const items = found.map((it) => {
      const pick = (): void => {
        this.close();
        onPick(it);
      };
      return element(
        "li",
        {},
        element(
          "button",
          { type: "button", onclick: pick },
          element("span", { class: "kind" }, it.kind),
          name(it.label || "?", "function"),
          name(it.place, "place"),
          it.samples ? element("span", { class: "quiet" }, plural(it.samples, "sample")) : null,
        ),
      );
    });
    replace(this.#list, ...items);
  }

  #move(event: KeyboardEvent): void {
    const buttons = [...this.#list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "Enter" && at < 0) {
      buttons[0]?.click();
      event.preventDefault();
    } else if (event.key === "ArrowDown") {
      buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
      event.preventDefault();
    } else if (event.key === "ArrowUp") {
      if (at <= 0) this.#input.focus();
      else buttons[at - 1]?.focus();
      event.preventDefault();
    }
  }
}
