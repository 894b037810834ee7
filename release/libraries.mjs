// Writes the folders of the npm packages of the libraries: compiled sources, declarations, data files, README, LICENSE.
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT, STARTED, sourcesOf } from '../compile/pieces.mjs';
import { OLDEST_NODE } from '../shared/bin/compiled.mjs';

const run = promisify(execFile);
/** Libraries that are published, each after the libraries that it needs. */
export const LIBRARIES = ['shared', 'policy', 'sandbox', 'grading', 'datasets', 'trajectories'];
const TSC = join(ROOT, 'node_modules/.bin/tsc');

/** Writes a folder `out`/NAME for each library. */
export async function writeLibraries(out) {
  const compiled = join(out, 'compiled');
  const args = ['-p', 'release/libraries.tsconfig.json', '--outDir', compiled];
  await run(TSC, args, { cwd: ROOT, maxBuffer: 1 << 24 }).catch((error) => {
    throw new Error(`the libraries do not compile:\n${error.stdout}`);
  });
  const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const nodeTypes = { '@types/node': devDependencies['@types/node'] };
  for (const name of LIBRARIES)
    await writeLibrary(name, { from: join(compiled, name), to: join(out, name), nodeTypes });
  await rm(compiled, { recursive: true });
}

async function writeLibrary(name, { from, to, nodeTypes }) {
  await mkdir(to, { recursive: true });
  await cp(join(from, 'src'), join(to, 'src'), { recursive: true });
  for (const path of await sourcesOf(name))
    if (/^\w+\/((src|data)\/.*(?<!\.tsx?)|bin\/lasting.*|README\.md)$/.test(path))
      await cp(join(ROOT, path), join(to, path.slice(name.length + 1)));
  await cp(join(ROOT, 'LICENSE'), join(to, 'LICENSE'));
  const record = JSON.parse(await readFile(join(ROOT, name, 'package.json'), 'utf8'));
  await writeFile(
    join(to, 'package.json'),
    `${JSON.stringify(published(name, record, nodeTypes), null, 2)}\n`,
  );
  for (const path of await readdir(join(to, 'src'), { recursive: true }))
    if (/\.(js|d\.ts)$/.test(path)) await withCompiledNames(join(to, 'src', path));
}

/** Renames `.ts` to `.js` in thread URLs and in imports of declaration files, which tsc does not rewrite. */
async function withCompiledNames(path) {
  const text = await readFile(path, 'utf8');
  const renamed = path.endsWith('.js')
    ? text.replace(STARTED, "new URL('./$1.js', import.meta.url)")
    : text.replace(/(?<=(?:from |import\()["']\.[^"']*)\.ts(?=["'])/g, '.js');
  if (renamed !== text) await writeFile(path, renamed);
}

/** Returns the package.json of a published library. Its declarations name types of Node and of the workspace's `@types` packages. */
function published(name, record, nodeTypes) {
  const { private: _private, scripts: _scripts, devDependencies = {}, exports, ...kept } = record;
  const entries = Object.entries(exports).filter(([entry]) => !entry.startsWith('./test'));
  const compiled = entries.map(([entry, source]) => {
    const base = source.replace(/\.ts$/, '');
    return [entry, { types: `${base}.d.ts`, default: `${base}.js` }];
  });
  const types = Object.entries(devDependencies).filter(([one]) => one.startsWith('@types/'));
  return {
    ...kept,
    description: DESCRIPTIONS[name],
    engines: { node: `>=${OLDEST_NODE}` },
    exports: Object.fromEntries(compiled),
    dependencies: { ...record.dependencies, ...nodeTypes, ...Object.fromEntries(types) },
  };
}

const DESCRIPTIONS = {
  shared:
    'Records, configuration and Redis protocol of swefarm, a farm for rollouts of software-engineering agents.',
  policy: 'Turns of a model over OpenAI-compatible endpoints with exact token ids and log-probabilities.',
  sandbox:
    'Sandboxes for commands of agents: Docker, Podman, Apptainer, and overlay roots without an engine.',
  grading: 'Test plans, log parsers, verdicts and rewards of SWE-bench-style datasets.',
  datasets: 'Readers of SWE-bench-style datasets: fifteen families in JSON, JSON Lines and parquet.',
  trajectories: 'Trajectories of software-engineering agents: reports, imports, and exports for training.',
};
