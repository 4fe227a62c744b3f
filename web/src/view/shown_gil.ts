/** Makes a GIL ready to be shown: who its threads are, and in which order and colours. */

import type { Level } from "../format/level";
import type { Client } from "../worker/client";
import { coloursOf, labelsOf, type Context, type ShownGil } from "./context";

/** The GIL of that index in the summary. */
export async function shownGil(context: Context, index: number): Promise<ShownGil> {
  const { client, summary } = context;
  const lanes = await client.ask("lanes", { gil: index });
  const hasLevels = summary.gils[index]?.levels.length;
  const level = hasLevels ? await coarsest(client, index) : null;
  const count = lanes.tid.length;
  const { held, waited } = sums(level, count);
  const weight = (lane: number): number => (held[lane] as number) + (waited[lane] as number);
  const order = Array.from({ length: count }, (_, lane) => lane)
    .filter((lane) => lanes.tid[lane] !== null || weight(lane) > 0)
    .sort((one, other) => weight(other) - weight(one));
  const labels = labelsOf(lanes);
  return { index, lanes, order, colourOf: coloursOf(order, held, count), labels };
}

function coarsest(client: Client, gil: number): Promise<Level> {
  return client.ask("level", { gil, level: 0 });
}

/** By lane, what it held and waited in all. */
function sums(level: Level | null, lanes: number): { held: Float64Array; waited: Float64Array } {
  const [held, waited] = [new Float64Array(lanes), new Float64Array(lanes)];
  for (let lane = 0; level && lane < lanes; lane++) {
    const end = level.laneStart[lane + 1] as number;
    for (let row = level.laneStart[lane] as number; row < end; row++) {
      const run = level.run[row] as number;
      held[lane] = (held[lane] as number) + (level.held[row] as number) * run;
      waited[lane] = (waited[lane] as number) + (level.waited[row] as number) * run;
    }
  }
  return { held, waited };
}
