/** The worker of the page: it decodes blocks and measures ranges. */

import { Answers } from "./answers";
import type { ToWorker } from "./questions";

const answers = new Answers((message, owned) => {
  self.postMessage(message, { transfer: owned });
});

self.addEventListener("message", (event: MessageEvent<ToWorker>) => {
  answers.take(event.data);
});
