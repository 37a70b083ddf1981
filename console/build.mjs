// Bundles the console into the folder given with --out; with --tests, the unit tests into build/.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values } = parseArgs({ options: { out: { type: "string" }, tests: { type: "boolean" } } });
const out = values.out ?? join(here, "../shared/console/assets");
const library = { bundle: true, format: "esm", target: "es2022", jsx: "automatic", jsxImportSource: "preact" };

async function buildTests() {
  const names = (await readdir(join(here, "test"))).filter((name) => name.endsWith(".test.ts"));
  const entryPoints = names.map((name) => join(here, "test", name));
  await build({ ...library, entryPoints, outdir: join(here, "build"), platform: "node" });
}

async function buildConsole() {
  await mkdir(out, { recursive: true });
  await build({
    ...library,
    entryPoints: { app: join(here, "src/main.tsx"), style: join(here, "src/style.css") },
    outdir: out,
    minify: true,
    // Lines, so that a change of one function is not a change of the whole file.
    lineLimit: 160,
    legalComments: "none",
  });
  for (const name of ["index.html", "icon.svg"]) await writeFile(join(out, name), await readFile(join(here, "src", name)));
  await writeFile(join(out, "licenses.txt"), await licenses(["preact", "js-yaml"]));
  await writeFile(join(out, "sources.sha256"), `${await hashOfSources()}\n`);
}

async function licenses(packages) {
  const texts = packages.map(async (name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${(await readFile(join(folder, "LICENSE"), "utf8")).trim()}\n`;
  });
  return (await Promise.all(texts)).join("\n");
}

// Over the names and contents of what the bundle is made of; shared/console/files.py has the same.
async function hashOfSources() {
  const found = await readdir(join(here, "src"), { recursive: true, withFileTypes: true });
  const files = found.filter((one) => one.isFile()).map((one) => relative(here, join(one.parentPath ?? one.path, one.name)));
  const whole = createHash("sha256");
  for (const name of [...files, "build.mjs", "package-lock.json"].sort()) {
    const content = createHash("sha256").update(await readFile(join(here, name))).digest("hex");
    whole.update(`${content}  ${name}\n`);
  }
  return whole.digest("hex");
}

await (values.tests ? buildTests() : buildConsole());
