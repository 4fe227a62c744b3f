/** The page's side of its workers. */

import source from "worker:./worker.ts";

import type { Summary } from "../format/summary";
import { Answers } from "./answers";
import type { FromWorker, Name, Questions, ToWorker } from "./questions";

/** How much text of blocks is sent before the page may paint again. */
const SENT_AT_ONCE = 1 << 20;
/** What the reader of the timeline waits for: not behind the measuring of a long time. */
const FOR_THE_PICTURE: readonly Name[] = [
  "lanes",
  "level",
  "chunk",
  "loose",
  "explain",
  "neighbour",
];

interface Pending {
  resolve(answer: never): void;
  reject(error: Error): void;
}

type Send = (message: ToWorker) => void;

/** Asks two workers, one for the picture; where there can be none, their code runs in the page. */
export class Client {
  readonly #picture: Send;
  readonly #numbers: Send;
  readonly #pending = new Map<number, Pending>();
  #asked = 0;
  #isPaused = false;

  constructor(summary: Summary) {
    const take = (message: FromWorker): void => {
      this.#take(message);
    };
    [this.#picture, this.#numbers] = started(take);
    this.#send({ what: "summary", summary });
  }

  /** Hands all blocks of the document to the workers, a few at a time. */
  async sendBlocks(page: Document): Promise<void> {
    let sent = 0;
    for (let block = 0; ; block++) {
      const text = page.getElementById(`ungil-block-${block}`)?.textContent;
      if (text === undefined) return;
      this.#send({ what: "block", block, text });
      sent += text.length;
      if (sent > SENT_AT_ONCE) {
        sent = 0;
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
  }

  /** Lets measuring pause, or go on: what the reader looks at comes first. */
  pauseNumbers(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.#numbers({ what: "pause", isPaused });
  }

  /** Asks; rejected if the worker has failed, or if it was told by `signal` to give up. */
  ask<N extends Name>(
    name: N,
    ask: Questions[N]["ask"],
    signal?: AbortSignal,
  ): Promise<Questions[N]["answer"]> {
    const isUrgent = FOR_THE_PICTURE.includes(name);
    return this.#asking(isUrgent ? this.#picture : this.#numbers, name, ask, signal);
  }

  /** Asks for what is not needed yet, where nothing that is needed has to wait for it. */
  askAhead<N extends Name>(name: N, ask: Questions[N]["ask"]): Promise<Questions[N]["answer"]> {
    return this.#asking(this.#numbers, name, ask);
  }

  #asking<N extends Name>(
    send: Send,
    name: N,
    ask: Questions[N]["ask"],
    signal?: AbortSignal,
  ): Promise<Questions[N]["answer"]> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as Pending["resolve"], reject });
      signal?.addEventListener("abort", () => {
        send({ what: "cancel", id });
      });
      send({ what: "ask", id, name, ask });
    });
  }

  /** Tells both. */
  #send(message: ToWorker): void {
    this.#picture(message);
    this.#numbers(message);
  }

  #take(message: FromWorker): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if ("error" in message) pending?.reject(new Error(message.error));
    else pending?.resolve(message.answer as never);
  }
}

function started(take: (message: FromWorker) => void): [Send, Send] {
  try {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    return [worker(url, take), worker(url, take)];
  } catch {
    const here = (): Send => {
      const answers = new Answers(take);
      return (message) => {
        answers.take(message);
      };
    };
    return [here(), here()];
  }
}

function worker(url: string, take: (message: FromWorker) => void): Send {
  const made = new Worker(url);
  made.addEventListener("message", (event: MessageEvent<FromWorker>) => {
    take(event.data);
  });
  return (message) => {
    made.postMessage(message);
  };
}
