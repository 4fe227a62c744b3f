/** Answers what the page asks: in a worker, or beside the page where a browser allows none. */

import { readSleeps } from "../format/sleeps";
import type { Stacks, Summary } from "../format/summary";
import { explain, neighbour } from "../model/explain";
import { flame } from "../model/flame";
import { measure } from "../model/measure";
import { missingIn, withMissing } from "../model/rough";
import { readSamples, sampled, type Known, type Samples } from "../model/samples";
import { search } from "../model/search";
import { Blocks } from "./block_store";
import { Cancelled, GilReader, type Pace } from "./gil_reader";
import type { FromWorker, Name, Questions, ToWorker } from "./questions";

const US_PER_MS = 1000;

/** Sends an answer; the buffers in `owned` are nobody else's, and may be moved. */
type Send = (message: FromWorker, owned: ArrayBuffer[]) => void;

/** Takes messages, and sends the answers. */
export class Answers {
  readonly #send: Send;
  readonly #blocks = new Blocks();
  readonly #cancelled = new Set<number>();
  #goesOn: Promise<void> | null = null;
  #goOn: () => void = () => undefined;
  #summary: Summary | undefined;
  #gils: GilReader[] = [];

  constructor(send: Send) {
    this.#send = send;
  }

  /** Takes one message; never throws. */
  take(message: ToWorker): void {
    switch (message.what) {
      case "summary":
        this.#summary = message.summary;
        this.#gils = message.summary.gils.map((gil) => new GilReader(gil, this.#blocks));
        break;
      case "block":
        this.#blocks.put(message.block, message.text);
        break;
      case "cancel":
        this.#cancelled.add(message.id);
        break;
      case "pause":
        this.#pause(message.isPaused);
        break;
      case "ask":
        void this.#answer(message.id, message.name, message.ask);
    }
  }

  #pause(isPaused: boolean): void {
    if (!isPaused) {
      this.#goesOn = null;
      this.#goOn();
    } else if (!this.#goesOn) {
      this.#goesOn = new Promise((resolve) => (this.#goOn = resolve));
    }
  }

  async #answer(id: number, name: Name, ask: unknown): Promise<void> {
    try {
      const pace = async (): Promise<void> => {
        if (this.#goesOn) await this.#goesOn;
        if (this.#cancelled.has(id)) throw new Cancelled();
      };
      const answer = await this.#answers[name](ask as never, pace);
      // A level is made anew each time, and large; chunks are kept.
      this.#send({ id, answer }, name === "level" ? buffersOf(answer as object) : []);
    } catch (error) {
      const said = error instanceof Cancelled ? "cancelled" : String(error);
      this.#send({ id, error: said }, []);
    } finally {
      this.#cancelled.delete(id);
    }
  }

  readonly #answers: {
    [N in Name]: (ask: Questions[N]["ask"], pace: Pace) => Promise<Questions[N]["answer"]>;
  } = {
    report: () => this.#blocks.json(this.#page.full_report.block),
    lanes: ({ gil }) => this.#gil(gil).lanes(),
    level: ({ gil, level }) => this.#gil(gil).level(level),
    chunk: ({ gil, chunk }) => this.#gil(gil).chunk(chunk),
    loose: ({ gil }) => this.#gil(gil).loose(),
    sleeps: async ({ process }) => {
      const tables = this.#page.processes[process]?.sleeps;
      return {
        parks: readSleeps(await this.#blocks.table(tables?.parks)),
        lockWaits: readSleeps(await this.#blocks.table(tables?.lock_waits)),
      };
    },
    numbers: async ({ gil, from, to }, pace) => {
      const reader = this.#gil(gil);
      const range = { from, to };
      const usPerUnit = this.#page.unit_ns / 1000;
      const chunks = reader.chunksOf(range);
      const before = await reader.before(chunks[0] ?? 0, pace);
      const holds = await reader.holds(chunks, pace);
      const interval = reader.gil.switch_interval_ms;
      const numbers = measure(
        {
          holds,
          loose: await reader.loose(),
          before,
          lanes: reader.gil.lanes.rows,
          blameAfter: (this.#page.blame_after_ms * US_PER_MS) / usPerUnit,
          switchInterval: interval === null ? null : (interval * US_PER_MS) / usPerUnit,
          usPerUnit,
        },
        range,
      );
      const known = await this.#known(reader);
      for (const hold of numbers.longHolds) {
        hold.did = sampled(known, { lane: hold.lane, from: hold.begin, to: hold.end });
      }
      return missingIn(reader.gil, range).length
        ? withMissing(numbers, reader, range, usPerUnit)
        : numbers;
    },
    flame: async ({ gil, blamed }) => {
      const reader = this.#gil(gil);
      const usPerUnit = this.#page.unit_ns / 1000;
      const long = (this.#page.blame_after_ms * US_PER_MS) / usPerUnit;
      const lookFor = reader.gil.look_for ?? 0;
      const [samples, stacks, lanes] = await Promise.all([
        this.#samples(reader),
        this.#stacks(),
        reader.lanes(),
      ]);
      return flame(samples, stacks, lanes.name, { ...blamed, long, lookFor });
    },
    explain: async ({ gil, lane, from, to }) => {
      const reader = this.#gil(gil);
      return explain(await this.#known(reader), reader, lane, { from, to });
    },
    neighbour: async ({ gil, lane, at, step }) => {
      const reader = this.#gil(gil);
      return neighbour(await this.#known(reader), reader, lane, at, step);
    },
    search: async ({ text }) => {
      const gils = await Promise.all(
        this.#gils.map(async (reader, gil) => ({
          gil,
          lanes: await reader.lanes(),
          samples: await this.#samples(reader),
        })),
      );
      return search(text, gils, await this.#stacks());
    },
  };

  async #known(reader: GilReader): Promise<Known> {
    const [samples, stacks] = await Promise.all([this.#samples(reader), this.#stacks()]);
    return { samples, stacks };
  }

  async #samples(reader: GilReader): Promise<Samples> {
    return readSamples(await reader.table(reader.gil.samples));
  }

  async #stacks(): Promise<Stacks> {
    const ref = this.#page.stacks;
    return ref
      ? this.#blocks.json<Stacks>(ref.block)
      : { strings: [""], frames: [], stacks: [], whys: [] };
  }

  get #page(): Summary {
    if (!this.#summary) throw new Error("the page has not said what it holds");
    return this.#summary;
  }

  #gil(index: number): GilReader {
    const reader = this.#gils[index];
    if (!reader) throw new Error(`the page has no data of GIL ${index}`);
    return reader;
  }
}

/** The buffers of an object's arrays, each once. */
function buffersOf(answer: object): ArrayBuffer[] {
  const arrays = Object.values(answer).filter((value) => ArrayBuffer.isView(value));
  return [...new Set(arrays.map((array) => array.buffer as ArrayBuffer))];
}
