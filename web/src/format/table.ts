/** Tables: columns of integers, each stored as planes of bytes ("Blocks" in FORMAT.md). */

import type { TableRef } from "./summary";

/** The values of a column. */
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** A table that has been read. */
export interface Table {
  rows: number;
  column(name: string): Column;
}

/** The table that `ref` describes, from the bytes of its block. Throws if there are too few. */
export function readTable(ref: TableRef, bytes: Uint8Array): Table {
  const columns = new Map<string, Column>();
  let offset = 0;
  for (const [name, width] of ref.columns) {
    columns.set(name, readColumn(bytes, offset, ref.rows, width));
    offset += width * ref.rows;
  }
  if (offset > bytes.length) {
    throw new Error(`block ${ref.block} has ${bytes.length} bytes, its table needs ${offset}`);
  }
  // A column that this page lacks is one of zeros.
  const none = new Uint8Array(ref.rows);
  return { rows: ref.rows, column: (name) => columns.get(name) ?? none };
}

function readColumn(bytes: Uint8Array, offset: number, rows: number, width: number): Column {
  if (width <= 1) return width ? bytes.slice(offset, offset + rows) : new Uint8Array(rows);
  const values =
    width === 2
      ? new Uint16Array(rows)
      : width <= 4
        ? new Uint32Array(rows)
        : new Float64Array(rows);
  for (let plane = 0; plane < width; plane++) {
    const at = offset + plane * rows;
    const factor = 2 ** (8 * plane);
    for (let row = 0; row < rows; row++) {
      values[row] = (values[row] as number) + (bytes[at + row] as number) * factor;
    }
  }
  return values;
}
