/** Runs the unit tests: esbuild makes JavaScript of them, node's own runner runs it. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const made = mkdtempSync(join(tmpdir(), "ungil-page-"));
const tests = readdirSync(join(HERE, "tests")).filter((name) => name.endsWith(".test.ts"));
await build({
  absWorkingDir: HERE,
  bundle: true,
  entryPoints: tests.map((name) => join("tests", name)),
  format: "esm",
  logLevel: "warning",
  outdir: made,
  outExtension: { ".js": ".mjs" },
  platform: "node",
});
const files = tests.map((name) => join(made, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });
rmSync(made, { recursive: true });
process.exitCode = status ?? 1;
