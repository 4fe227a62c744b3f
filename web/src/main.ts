/** Where the page begins: paints the first screen, then loads the rest. */

import type { Summary } from "./format/summary";
import { element } from "./view/dom";
import { Page } from "./view/page";

/** The format that this page reads. */
const FORMAT = 1;

function main(): void {
  const place = document.getElementById("page");
  const text = document.getElementById("ungil-summary")?.textContent;
  if (!place || !text) return;
  const summary = JSON.parse(text) as Summary;
  if (summary.format !== FORMAT) {
    place.append(
      element("p", {}, `This page has data of format ${summary.format}, not ${FORMAT}.`),
    );
    return;
  }
  const page = new Page(summary, place);
  const ready = loaded().then(() => page.load());
  const hooks = page.offerHooks(ready);
  requestAnimationFrame(() => {
    hooks.painted = performance.now();
    performance.mark("ungil:first-paint");
  });
  void ready.then(() => {
    performance.mark("ungil:ready");
  });
}

/** Resolves when the whole document is there, with all blocks. */
function loaded(): Promise<void> {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("DOMContentLoaded", () => {
      resolve();
    });
  });
}

main();
