/** What the picked hold or wait was about, in words. */

import { End } from "../../format/holds";
import type { Explanation, Party } from "../../model/explanation";
import { placeOf } from "../../model/samples";
import { duration, plural } from "../../units/numbers";
import { printable } from "../../units/names";
import { momentOf, type Context } from "../context";
import { element, name, replace, type Child } from "../dom";

/** How many parties are listed. */
const PARTIES = 6;

const ENDINGS: Record<number, string> = {
  [End.Voluntary]: "released it voluntarily",
  [End.Forced]: "was forced to release it",
  [End.Unseen]: "released it unseen: events were lost",
  [End.Cut]: "still held the GIL when the recording ended",
};

/** What the panel can be asked for. */
export interface DetailActions {
  pick(lane: number, from: number, to: number): void;
  step(by: 1 | -1): void;
  select(): void;
  zoom(): void;
  close(): void;
}

/** Fills `place` with what is known of `picked`. */
export function showDetail(
  place: HTMLElement,
  picked: Explanation | null,
  context: Context,
  actions: DetailActions,
): void {
  place.hidden = !picked;
  if (!picked) {
    replace(place);
    return;
  }
  const { summary, gil } = context;
  const unit = summary.unit_ns;
  const time = (units: number): string => duration(units * unit);
  const label = (lane: number): HTMLElement => name(gil?.labels[lane] ?? "");
  const length = picked.end - picked.begin;
  const button = (text: string, act: () => void, keys: string): HTMLElement =>
    element("button", { type: "button", onclick: act, title: `key ${keys}` }, text);
  const stretch =
    `from ${momentOf(summary, picked.begin, 1000)} to ` + momentOf(summary, picked.end, 1000);
  replace(
    place,
    element(
      "h3",
      {},
      label(picked.lane),
      picked.kind === "wait" ? " waited " : " held the GIL for ",
      element("b", {}, time(length)),
    ),
    element("p", { class: "quiet" }, stretch),
    picked.kind === "wait" ? waitWords(picked, time, label) : holdWords(picked, time),
    parties(picked, time, label, actions),
    stack(picked, label),
    element(
      "p",
      { class: "actions" },
      button(
        "‹ before",
        () => {
          actions.step(-1);
        },
        ",",
      ),
      button(
        "next ›",
        () => {
          actions.step(1);
        },
        ".",
      ),
      button("Zoom to it", actions.zoom, "F"),
      button("Numbers of this time", actions.select, "M"),
      button("Close", actions.close, "Escape"),
    ),
  );
}

function waitWords(
  picked: Explanation,
  time: (units: number) => string,
  label: (lane: number) => HTMLElement,
): HTMLElement {
  const said: Child[] = [];
  if (picked.asks && picked.firstAsk !== null) {
    said.push(
      `It asked the holder to release the GIL after ${time(picked.firstAsk - picked.begin)}`,
      picked.asks > 1 ? ` (${plural(picked.asks, "drop request")}). ` : ". ",
    );
  }
  const [first] = picked.parties;
  if (first && first.lane >= 0) {
    said.unshift("Behind ", label(first.lane), `, which held for ${time(first.time)} of it. `);
  }
  if (!picked.isAnswered) said.push("It did not get the GIL. ");
  return element("p", {}, ...said);
}

function holdWords(picked: Explanation, time: (units: number) => string): HTMLElement {
  const said: string[] = [];
  if (picked.how !== null) said.push(`Then it ${ENDINGS[picked.how] ?? "released it"}. `);
  if (picked.asks && picked.firstAsk !== null) {
    said.push(
      `${plural(picked.asks, "drop request")}; after the first it went on for ` +
        `${time(picked.end - picked.firstAsk)}. `,
    );
  }
  if (picked.cpu !== null) said.push(`It ran for ${time(picked.cpu)} of it. `);
  if (picked.notRun) {
    said.push(`For at least ${time(picked.notRun)} the kernel did not run it (descheduled). `);
  }
  return element("p", {}, ...said);
}

function parties(
  picked: Explanation,
  time: (units: number) => string,
  label: (lane: number) => HTMLElement,
  actions: DetailActions,
): HTMLElement | null {
  if (!picked.parties.length) {
    return picked.kind === "hold" ? element("p", {}, "Nobody waited meanwhile.") : null;
  }
  const list = element("ul", { class: "parties" });
  for (const party of picked.parties.slice(0, PARTIES)) list.append(line(party));
  const more = picked.parties.length - PARTIES;
  if (more > 0) list.append(element("li", { class: "quiet" }, `and ${more} more`));
  return element(
    "div",
    {},
    element("h4", {}, picked.kind === "wait" ? "Who held meanwhile" : "Who waited meanwhile"),
    list,
  );

  function line(party: Party): HTMLElement {
    const amount = element("span", { class: "amount" }, time(party.time));
    if (party.lane < 0) {
      return element("li", {}, amount, "nobody: it was being handed over");
    }
    const go = (): void => {
      actions.pick(party.lane, party.from, party.to);
    };
    return element(
      "li",
      {},
      amount,
      element("button", { type: "button", class: "lane-link", onclick: go }, label(party.lane)),
    );
  }
}

function stack(picked: Explanation, label: (lane: number) => HTMLElement): HTMLElement | null {
  const holder =
    picked.kind === "hold" ? picked.lane : picked.parties.find((it) => it.lane >= 0)?.lane;
  if (holder === undefined) return null;
  if (!picked.stack.length) {
    const why = picked.why ? `No stack of that hold: ${printable(picked.why)}.` : "";
    return why ? element("p", { class: "quiet" }, why) : null;
  }
  const list = element("ol", { class: "stack" });
  for (const frame of picked.stack) {
    const kind = frame.isNative ? "native" : frame.isUser ? "user" : "";
    list.append(
      element(
        "li",
        { class: kind },
        name(frame.function, "function"),
        " ",
        name(placeOf(frame), "place"),
      ),
    );
  }
  return element(
    "div",
    {},
    element("h4", {}, "What ", label(holder), ` did (${plural(picked.samples, "sample")})`),
    list,
  );
}
