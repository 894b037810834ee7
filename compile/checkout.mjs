// Compiles the commands of this checkout into a few files ("pieces"), which halves the start time. `npm ci` and `npm run compile` run this
// script. After a change of a source, commands run from the sources until the next compilation.
// usage: node compile/checkout.mjs [--if-needed]     --if-needed: skips the compilation when the pieces are current
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiledOf, nameOf, PIECES, stampOf } from '../shared/bin/compiled.mjs';
import { compile, FRONTS, ROOT } from './pieces.mjs';

/** Entry file of each command, which `shared/bin/launch.mjs` loads. */
const SOURCES = ['producer/src/cli/main.ts', 'worker/src/main.ts'];
const FOLDER = join(ROOT, PIECES);
/** Replaced pieces are removed after this time, because running processes may still load them. */
const KEPT_MS = 14 * 24 * 3_600_000;
const THREAD = /[./]thread\.ts$/;
/** Maximum number of compilations, which end when no source changed since the previous compilation. */
const TRIES = 5;

/** Returns `starts` and all files that they import, directly or not. `graph`: `inputs` or `outputs` of esbuild's metafile. */
function reachedFrom(starts, graph) {
  const found = new Set(starts);
  // The loop also visits the entries that its body adds to the set.
  for (const path of found)
    for (const one of graph[path]?.imports ?? []) if (one.path in graph) found.add(one.path);
  return [...found];
}

/**
 * Returns the files that affect the compiled pieces. Each start checks them, so packages are represented by their `package.json`: npm also
 * rewrites `node_modules/.package-lock.json` when packages change.
 */
function decidingFiles(source, { inputs }) {
  const threads = Object.keys(inputs).filter((path) => THREAD.test(path));
  const compiled = reachedFrom([source, ...threads], inputs).filter((path) => !path.startsWith('absent:'));
  const own = compiled.filter((path) => !path.includes('node_modules/'));
  const records = ['package-lock.json', 'node_modules/.package-lock.json', 'tsconfig.json'];
  const compilers = ['pieces.mjs', 'checkout.mjs'].map((name) => `compile/${name}`);
  return [...new Set([...own, ...FRONTS, ...compiled.flatMap(packageOf), ...records, ...compilers])].sort();
}

/** Returns an array with the path of the `package.json` of the package that contains the file. */
const packageOf = (file) =>
  (/^(?:.*node_modules\/(?:@[^/]+\/)?)?[^/]+\//.exec(file) ?? []).map((folder) => `${folder}package.json`);

const stamped = (files) =>
  files
    .map((path) => [path, stampOf(resolve(ROOT, path))])
    .flatMap(([path, stamp]) => (stamp === null ? [] : [[path, ...stamp]]));

/** Compiles until no file changed during the compilation, so that the stamps describe the compiled content. */
async function compileAtRest() {
  const options = { folder: FOLDER, root: `new URL(${JSON.stringify(`${pathToFileURL(ROOT)}/`)})` };
  let before = '';
  for (let tries = 0; tries < TRIES; tries++) {
    const { outputFiles, metafile } = await compile(SOURCES, options);
    const files = SOURCES.map((source) => ({ source, files: stamped(decidingFiles(source, metafile)) }));
    const after = JSON.stringify(files);
    if (before === after) return { outputFiles, metafile, files };
    before = after;
  }
  throw new Error('the sources change all the time');
}

/** Writes a file atomically, because a command that starts now may load it. */
async function replace(path, contents) {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, contents);
  await rename(draft, path);
}

async function compileCheckout() {
  await mkdir(FOLDER, { recursive: true });
  const { outputFiles, metafile, files } = await compileAtRest();
  const { outputs } = metafile;
  // Commands start threads by file name and do not import them, so the threads are listed separately.
  const threads = Object.keys(outputs).filter((path) => THREAD.test(outputs[path].entryPoint ?? ''));
  await dateReplaced();
  for (const { path, contents } of outputFiles) await replace(path, contents);
  const current = new Set(outputFiles.map(({ path }) => path));
  for (const { source, files: sources } of files) {
    const record = join(FOLDER, `${nameOf(source)}.json`);
    current.add(record);
    const start = relative(ROOT, join(FOLDER, `${nameOf(source)}.mjs`));
    const pieces = stamped(reachedFrom([start, ...threads], outputs));
    await replace(record, JSON.stringify({ root: ROOT, files: [...pieces, ...sources] }));
  }
  await removeOld(current);
}

/** Sets the modification time of the existing pieces to now, so that {@link KEPT_MS} counts from their replacement. */
async function dateReplaced() {
  const now = new Date();
  for (const source of SOURCES)
    for (const path of await recordedPieces(source))
      await utimes(resolve(ROOT, path), now, now).catch(() => undefined);
}

/** Returns the paths of the pieces in the record of `source`; empty if the record is damaged or missing. */
async function recordedPieces(source) {
  try {
    const { files } = JSON.parse(await readFile(join(FOLDER, `${nameOf(source)}.json`), 'utf8'));
    return files.map(([path]) => path).filter((path) => path.startsWith(`${PIECES}/`));
  } catch {
    return [];
  }
}

async function removeOld(current) {
  for (const name of await readdir(FOLDER)) {
    const path = join(FOLDER, name);
    const found = current.has(path) ? null : await stat(path).catch(() => null);
    if (found && Date.now() - found.mtimeMs > KEPT_MS) await rm(path, { force: true });
  }
}

const isCurrent = SOURCES.every((source) => compiledOf(source, ROOT) !== null);
if (!isCurrent || !process.argv.includes('--if-needed')) await compileCheckout();
