// Compiles the commands of this checkout into pieces that start in half the time, at `npm ci` and by `npm run compile`. A changed source
// is used in place of its piece.
// usage: node compile/checkout.mjs [--if-needed]     --if-needed: not when the pieces are current
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiledOf, nameOf, PIECES, stampOf } from '../shared/bin/compiled.mjs';
import { compile, FRONTS, ROOT } from './pieces.mjs';

/** The first file that commands load (`shared/bin/launch.mjs`). */
const SOURCES = ['producer/src/cli/main.ts', 'worker/src/main.ts'];
const FOLDER = join(ROOT, PIECES);
/** Replaced pieces are removed after this time, because running processes may still load them. */
const KEPT_MS = 14 * 24 * 3_600_000;
const THREAD = /[./]thread\.ts$/;
/** Sources that change while they are compiled are compiled again. */
const TRIES = 5;

/** Returns `starts` and all files that they import, directly or not. `graph`: `inputs` or `outputs` of esbuild's metafile. */
function reachedFrom(starts, graph) {
  const found = new Set(starts);
  // Iterating over a set includes entries that are added meanwhile.
  for (const path of found)
    for (const one of graph[path]?.imports ?? []) if (one.path in graph) found.add(one.path);
  return [...found];
}

/**
 * Files that affect the compiled pieces. npm rewrites its record when packages change, so only the `package.json` of packages are
 * checked, which saves a start a thousand stat calls.
 */
function decidingFiles(source, { inputs }) {
  const threads = Object.keys(inputs).filter((path) => THREAD.test(path));
  const compiled = reachedFrom([source, ...threads], inputs).filter((path) => !path.startsWith('absent:'));
  const own = compiled.filter((path) => !path.includes('node_modules/'));
  const records = ['package-lock.json', 'node_modules/.package-lock.json', 'tsconfig.json'];
  const compilers = ['pieces.mjs', 'checkout.mjs'].map((name) => `compile/${name}`);
  return [...new Set([...own, ...FRONTS, ...compiled.flatMap(packageOf), ...records, ...compilers])].sort();
}

/** `package.json` of the package that a file belongs to. */
const packageOf = (file) =>
  (/^(?:.*node_modules\/(?:@[^/]+\/)?)?[^/]+\//.exec(file) ?? []).map((folder) => `${folder}package.json`);

const stamped = (files) =>
  files
    .map((path) => [path, stampOf(resolve(ROOT, path))])
    .flatMap(([path, stamp]) => (stamp === null ? [] : [[path, ...stamp]]));

/** Compiles until no file changed during the compilation, so that the stamps are valid. */
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

/** Renamed into place, because a command may start meanwhile. */
async function replace(path, contents) {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, contents);
  await rename(draft, path);
}

async function compileCheckout() {
  await mkdir(FOLDER, { recursive: true });
  const { outputFiles, metafile, files } = await compileAtRest();
  const { outputs } = metafile;
  // Threads are started by name, not imported.
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

/** Sets the time of a piece to that of its replacement. */
async function dateReplaced() {
  const now = new Date();
  for (const source of SOURCES)
    for (const path of await recordedPieces(source))
      await utimes(resolve(ROOT, path), now, now).catch(() => undefined);
}

/** Empty for a damaged or missing record. */
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
