/**
 * Builds the page without its data into the package: `node build.mjs [FILE]`.
 *
 * The worker is built first and becomes a text in the script, because a page that is one file can
 * only start a worker from a blob. The same sources always make the same bytes.
 */

import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
/** Where Rust takes it from; FORMAT.md names it. */
const SHELL = join(HERE, "..", "python", "ungil", "report", "page", "page.html");
/** What Rust replaces: each stands in the page exactly once. */
const MARKS = ["<title>ungil</title>", "<!-- ungil:summary -->", "<!-- ungil:blocks -->"];

const COMMON = {
  absWorkingDir: HERE,
  bundle: true,
  minify: true,
  write: false,
  target: ["es2022"],
  legalComments: "none",
  sourcemap: false,
  logLevel: "warning",
};

/** Builds a worker wherever the sources import `worker:PATH`, and gives its text. */
const worker = {
  name: "worker",
  setup(it) {
    it.onResolve({ filter: /^worker:/ }, (asked) => ({
      path: join(asked.resolveDir, asked.path.slice("worker:".length)),
      namespace: "worker",
    }));
    it.onLoad({ filter: /.*/, namespace: "worker" }, async ({ path }) => {
      const made = await build({ ...COMMON, entryPoints: [path], format: "iife" });
      return { contents: made.outputFiles[0].text.trim(), loader: "text" };
    });
  },
};

/** The page without its data. */
async function page() {
  const options = { ...COMMON, format: "iife", plugins: [worker] };
  const script = await build({ ...options, entryPoints: ["src/main.ts"] });
  const style = await build({ ...COMMON, entryPoints: ["src/style/page.css"] });
  // An end tag in a text of the script would end the script.
  const license = await readFile(join(HERE, "node_modules", "uplot", "LICENSE"), "utf8");
  const notice = `/* With uPlot (https://github.com/leeoniya/uPlot):\n${license.trim()} */\n`;
  const js = notice + script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
  const css = style.outputFiles[0].text.trim();
  const shell = await readFile(join(HERE, "src", "shell.html"), "utf8");
  const parts = { js, css, script: hash(js), style: hash(css) };
  const made = shell.replace(/\{(js|css|script|style)\}/g, (_, name) => parts[name]);
  const holes = shell.match(/\{(js|css|script|style)\}/g) ?? [];
  if (holes.length !== 4) throw new Error(`shell.html has the places ${holes.join(" ")}`);
  for (const mark of MARKS) {
    const times = made.split(mark).length - 1;
    if (times !== 1) throw new Error(`${mark} stands in the page ${times} times`);
  }
  return made;
}

/** What a content security policy calls a text. */
function hash(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

const file = process.argv[2] ?? SHELL;
const made = await page();
await mkdir(dirname(file), { recursive: true });
await writeFile(file, made);
console.log(`${file}: ${Buffer.byteLength(made).toLocaleString("en")} bytes`);
