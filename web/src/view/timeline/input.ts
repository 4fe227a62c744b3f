/** Pointers and wheels on the timeline: pan, zoom, select, pick. */

/** What a gesture asks for. Places are in CSS pixels from the left edge of the picture. */
export interface Gestures {
  /** The time at `x` comes to `x + by`. */
  pan(by: number): void;
  /** The time at `x` stays there, and everything gets `factor` times as wide. */
  zoom(x: number, factor: number): void;
  /** From `from` to `to`; `isDone` when the button was let go. */
  select(from: number, to: number, isDone: boolean): void;
  /** A click. */
  pick(x: number, y: number): void;
  /** Where the pointer is, or null when it has left. */
  hover(x: number | null, y: number): void;
}

/** Moves smaller than this are clicks. */
const CLICK = 4;
/** What a notch of a wheel zooms, by its distance. */
const WHEEL = 0.002;

/**
 * Listens on `area`, whose picture begins `gutter()` pixels from its left. A drag selects with the
 * shift key, or where `selectsAt(y)`; otherwise it pans.
 */
export function listen(
  area: HTMLElement,
  gutter: () => number,
  selectsAt: (y: number) => boolean,
  gestures: Gestures,
): void {
  const down = new Map<number, { x: number; y: number }>();
  let start: { x: number; y: number; selects: boolean } | null = null;
  let hasMoved = false;
  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = area.getBoundingClientRect();
    return { x: event.clientX - box.left - gutter(), y: event.clientY - box.top };
  };

  area.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || (event.target as Element).closest("button, a, select")) return;
    const at = place(event);
    if (at.x < 0) return;
    down.set(event.pointerId, at);
    start = { ...at, selects: event.shiftKey || selectsAt(at.y) };
    hasMoved = down.size > 1;
  });
  area.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = down.get(event.pointerId);
    if (!before || !start) {
      gestures.hover(at.x >= 0 ? at.x : null, at.y);
      return;
    }
    if (!hasMoved && Math.hypot(at.x - start.x, at.y - start.y) < CLICK) return;
    if (!hasMoved) {
      hasMoved = true;
      area.setPointerCapture(event.pointerId);
    }
    if (down.size > 1) {
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1] ?? at;
      const [was, is] = [Math.abs(before.x - other.x), Math.abs(at.x - other.x)];
      if (was > 8 && is > 8) gestures.zoom((at.x + other.x) / 2, is / was);
    } else if (start.selects) {
      gestures.select(start.x, at.x, false);
    } else {
      gestures.pan(at.x - before.x);
    }
    down.set(event.pointerId, at);
  });
  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId) || !start) return;
    const at = place(event);
    if (event.type === "pointerup") {
      if (!hasMoved) gestures.pick(at.x, at.y);
      else if (start.selects) gestures.select(start.x, at.x, true);
    }
    if (!down.size) start = null;
  };
  area.addEventListener("pointerup", up);
  area.addEventListener("pointercancel", up);
  area.addEventListener("pointerleave", () => {
    gestures.hover(null, 0);
  });
  area.addEventListener(
    "wheel",
    (event) => {
      const { x } = place(event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        gestures.zoom(x, Math.exp(-event.deltaY * WHEEL * (event.deltaMode ? 20 : 1)));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        gestures.pan(-(event.deltaX || event.deltaY));
      }
    },
    { passive: false },
  );
}
