/** The page's side of its worker. */

import source from "worker:./worker.ts";

import type { Summary } from "../format/summary";
import { Answers } from "./answers";
import type { FromWorker, Name, Questions, ToWorker } from "./questions";

/** How much text of blocks is sent before the page may paint again. */
const SENT_AT_ONCE = 1 << 20;

interface Pending {
  resolve(answer: never): void;
  reject(error: Error): void;
}

/** Asks the worker; where there can be none, the same code answers beside the page. */
export class Client {
  readonly #send: (message: ToWorker) => void;
  readonly #pending = new Map<number, Pending>();
  #asked = 0;

  constructor(summary: Summary) {
    this.#send = started((message) => this.#take(message));
    this.#send({ what: "summary", summary });
  }

  /** Hands all blocks of the document to the worker, a few at a time. */
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

  /** Asks; the answer is rejected if `signal` aborts first, or the worker has failed. */
  ask<N extends Name>(
    name: N,
    ask: Questions[N]["ask"],
    signal?: AbortSignal,
  ): Promise<Questions[N]["answer"]> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as Pending["resolve"], reject });
      signal?.addEventListener("abort", () => {
        this.#send({ what: "cancel", id });
      });
      this.#send({ what: "ask", id, name, ask });
    });
  }

  #take(message: FromWorker): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if ("error" in message) pending?.reject(new Error(message.error));
    else pending?.resolve(message.answer as never);
  }
}

function started(take: (message: FromWorker) => void): (message: ToWorker) => void {
  try {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url);
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => {
      take(event.data);
    });
    return (message) => {
      worker.postMessage(message);
    };
  } catch {
    const answers = new Answers(take);
    return (message) => {
      answers.take(message);
    };
  }
}
