/** The keys of the page, and the list of them. */

import { element } from "./dom";

/** What keys can do. */
export interface KeyActions {
  zoom(factor: number): void;
  pan(share: number): void;
  lane(by: number): void;
  pick(): void;
  step(by: 1 | -1): void;
  fit(): void;
  whole(): void;
  select(): void;
  search(): void;
  /** Closes the innermost thing that is open. */
  escape(): void;
}

const KEYS: [string, string][] = [
  ["W, S", "zoom in and out"],
  ["A, D", "move left and right"],
  ["← →", "move, ↑ ↓ another thread (on the timeline)"],
  ["Enter", "explain the longest hold or wait of this thread in view"],
  [", .", "the previous or next hold or wait"],
  ["F", "zoom to what is explained, or to the selection"],
  ["M", "show the numbers of that time"],
  ["0", "show all"],
  ["/", "search"],
  ["Escape", "close, then select nothing"],
  ["drag", "move; with shift, or on the ruler, select a time"],
  ["Ctrl + wheel", "zoom"],
];

const ZOOM = 1.5;
const PAN = 0.15;

/** The list of keys, as a dialog. */
export function help(): HTMLDialogElement {
  const list = element("dl", { class: "keys" });
  for (const [keys, meaning] of KEYS) {
    list.append(element("dt", {}, keys), element("dd", {}, meaning));
  }
  const dialog = element("dialog", { "aria-labelledby": "keys" });
  dialog.append(
    element("h2", { id: "keys" }, "Keys"),
    list,
    element(
      "button",
      {
        type: "button",
        onclick: () => {
          dialog.close();
        },
      },
      "Close",
    ),
  );
  return dialog;
}

/** Listens to all keys of the document; arrows count only on `timeline`. */
export function listenToKeys(
  timeline: HTMLElement,
  dialog: HTMLDialogElement,
  actions: KeyActions,
): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const target = event.target as Element;
    const isTyping = target.matches("input, select, textarea");
    if (event.key === "Escape") {
      actions.escape();
      return;
    }
    if (isTyping) return;
    const act = keyAction(event.key, timeline === document.activeElement, dialog, actions);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function keyAction(
  key: string,
  isOnTimeline: boolean,
  dialog: HTMLDialogElement,
  actions: KeyActions,
): (() => void) | undefined {
  const anywhere: Record<string, () => void> = {
    w: () => {
      actions.zoom(ZOOM);
    },
    s: () => {
      actions.zoom(1 / ZOOM);
    },
    a: () => {
      actions.pan(-PAN);
    },
    d: () => {
      actions.pan(PAN);
    },
    f: actions.fit,
    m: actions.select,
    "0": actions.whole,
    "/": actions.search,
    ",": () => {
      actions.step(-1);
    },
    ".": () => {
      actions.step(1);
    },
    "?": () => {
      dialog.showModal();
    },
  };
  const onTimeline: Record<string, () => void> = {
    ArrowLeft: () => {
      actions.pan(-PAN);
    },
    ArrowRight: () => {
      actions.pan(PAN);
    },
    ArrowUp: () => {
      actions.lane(-1);
    },
    ArrowDown: () => {
      actions.lane(1);
    },
    Enter: actions.pick,
  };
  return (isOnTimeline ? onTimeline[key] : undefined) ?? anywhere[key.toLowerCase()];
}
