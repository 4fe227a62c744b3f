/** The blame matrix: who waited for whom. */

import type { Figures, PartyName } from "../model/figures";
import { duration } from "../units/numbers";
import { partyLabel, type ShownGil } from "./context";
import { element, replace, shortName } from "./dom";
import { wide } from "./threads";

/** How many victims and culprits have a line of their own. */
const VICTIMS = 12;
const CULPRITS = 7;
/** The most characters of a name, and on a phone. */
const WIDE = 20;
const NARROW = 13;

/** A matrix of sums; the last row and column may be of all others. */
export interface Matrix {
  victims: (PartyName | "rest")[];
  culprits: (PartyName | "rest")[];
  /** By victim, then culprit. */
  cells: number[][];
  restOfVictims: number;
  restOfCulprits: number;
}

/** The largest sums of `blame` in at most `victims` rows and `culprits` columns, and the rest. */
export function matrixOf(blame: Figures["blame"], victims = VICTIMS, culprits = CULPRITS): Matrix {
  const [byVictim, byCulprit] = [ranked(blame, "victim"), ranked(blame, "culprit")];
  const rows: Matrix["victims"] = byVictim.slice(0, victims);
  const columns: Matrix["culprits"] = byCulprit.slice(0, culprits);
  if (byVictim.length > victims) rows.push("rest");
  if (byCulprit.length > culprits) columns.push("rest");
  const cells = rows.map(() => columns.map(() => 0));
  const rowOf = new Map(rows.map((party, index) => [party, index]));
  const columnOf = new Map(columns.map((party, index) => [party, index]));
  for (const { victim, culprit, waited } of blame) {
    const row = cells[rowOf.get(victim) ?? rows.length - 1] as number[];
    const column = columnOf.get(culprit) ?? columns.length - 1;
    row[column] = (row[column] as number) + waited;
  }
  return {
    victims: rows,
    culprits: columns,
    cells,
    restOfVictims: byVictim.length - victims,
    restOfCulprits: byCulprit.length - culprits,
  };
}

function ranked(blame: Figures["blame"], side: "victim" | "culprit"): PartyName[] {
  const sums = new Map<PartyName, number>();
  for (const row of blame) sums.set(row[side], (sums.get(row[side]) ?? 0) + row.waited);
  return [...sums].sort((one, other) => other[1] - one[1]).map(([party]) => party);
}

/** Fills `place` with the matrix of `figures`. */
export function showBlame(place: HTMLElement, figures: Figures, gil: ShownGil): void {
  const { victims, culprits, cells, restOfVictims, restOfCulprits } = matrixOf(figures.blame);
  if (!victims.length) {
    replace(place, element("p", { class: "quiet" }, "Nobody waited in this time."));
    return;
  }
  const label = (party: PartyName | "rest", rest: number): HTMLElement =>
    party === "rest"
      ? element("span", {}, `${rest} more`)
      : shortName(partyLabel(gil, party), WIDE, NARROW);
  const most = Math.max(...cells.flat());
  const head = element("tr", {}, element("th", { scope: "col" }, "waited ↓ while held →"));
  for (const culprit of culprits) {
    head.append(element("th", { scope: "col" }, label(culprit, restOfCulprits)));
  }
  const body = element("tbody");
  victims.forEach((victim, index) => {
    const row = element("tr", {}, element("th", { scope: "row" }, label(victim, restOfVictims)));
    for (const waited of cells[index] as number[]) {
      const cell = element("td", {}, waited > 0 ? duration(waited) : "–");
      cell.style.setProperty("--heat", `${Math.round((waited / most) * 100)}%`);
      row.append(cell);
    }
    body.append(row);
  });
  replace(
    place,
    wide(
      "Who waited for whom",
      element("table", { class: "blame" }, element("thead", {}, head), body),
    ),
  );
}
