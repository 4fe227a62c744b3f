import assert from "node:assert/strict";
import { test } from "node:test";

import { family, printable, shortened } from "../src/units/names";
import { inTwo } from "../src/view/findings";

test("nothing invisible stays in a name", () => {
  assert.equal(printable("a\u0000b\u001b[31m"), "a\\x00b\\x1b[31m");
  assert.equal(printable("\u202egnp.exe"), "\\u202egnp.exe");
  assert.equal(printable("a\nb\u2028c"), "a\\nb\\u2028c");
  assert.equal(printable("\ud800"), "\\ud800");
  assert.equal(printable("<b>שלום</b>"), "<b>שלום</b>");
});

test("a long name keeps its end, where numbers are", () => {
  assert.equal(shortened("ThreadPoolExecutor-0_3", 16), "ThreadPoo…or-0_3");
});

test("the headline of a finding is its first clause, behind the process", () => {
  const text =
    "convoy_server.py (pid 7061): thread a waited 1.05 of 4.17 s, behind b: 204 of its calls; 4 more";
  assert.deepEqual(inTwo(text), {
    headline: "convoy_server.py (pid 7061): thread a waited 1.05 of 4.17 s, behind b",
    rest: "204 of its calls; 4 more",
  });
  assert.deepEqual(inTwo("nothing"), { headline: "nothing", rest: "" });
});

test("a name is cut behind the number that tells it from others, where that comes early", () => {
  const name = "Thread-12 (process_request_thread)";
  assert.equal(shortened(name, 10), "Thread-12");
  assert.equal(shortened(name, 17), "Thread-12 (proce…");
  assert.equal(shortened(name, 40), name);
  assert.equal(shortened("Thread-12345 (process_request_thread)", 10), "Thre…12345");
  assert.equal(shortened("a_thread_without_any_number", 10), "a_thr…mber");
});

test("a family has the last number of its names in common no more", () => {
  assert.equal(family("Thread-12 (process_request_thread)"), "Thread-* (process_request_thread)");
  assert.equal(family("ThreadPoolExecutor-0_3"), "ThreadPoolExecutor-0_*");
  assert.equal(family("MainThread"), "MainThread");
});
