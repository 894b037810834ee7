// Makes the folder that nodes run from: the compiled commands and threads, the texts our sources read, one Node binary, and a
// static Redis server where one can be had. Nothing needs installing there, and no node_modules lies on a parallel file system.
// usage: npm run bundle [-- --out DIR]      default: dist/swefarm
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { build, transform } from 'esbuild';
import { ensurePage } from '../producer/src/page/built.ts';
import { fetchedServer } from '../shared/src/index.ts';

const ROOT = resolve(import.meta.dirname, '..');
/** Where our own sources lie; all else in a bundle comes from node_modules. */
const PACKAGES = ['shared', 'grading', 'producer', 'worker'];
/** Threads are files of their own, known by their name; `shared/src/imports.test.ts` holds that no other file is started. */
const THREAD = /(^|[./])thread\.ts$/;
const COMMANDS = { swefarm: 'producer/bin/swefarm.mjs', 'swefarm-worker': 'worker/bin/swefarm-worker.mjs' };
/** All compiled files lie in this folder: the commands, the threads, and the pieces that several of them load. */
const CODE = 'code';
/** Compiled files are modules; what they contain of CommonJS expects these. */
const BANNER = `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);
const __filename = import.meta.filename, __dirname = import.meta.dirname;
const __bundleRoot = new URL('../', import.meta.url);`;
/** By this line a source loads a package at its first use: without it, the bundler sees what is loaded. */
const REQUIRE = 'const require = createRequire(import.meta.url);';

/** A source asks for files beside it by its own URL: in the bundle that is the place which mirrors it. */
const mirrored = {
  name: 'mirrored',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
      const place = relative(ROOT, path).split(sep).join('/');
      const text = await readFile(path, 'utf8');
      const own = PACKAGES.includes(place.split('/')[0] ?? '') && !place.includes('node_modules/');
      if (!own || !text.includes('import.meta')) return undefined;
      const { code } = await transform(text.replace(REQUIRE, ''), {
        loader: 'ts',
        sourcefile: place,
        banner: `import { fileURLToPath as __path } from 'node:url';
const __ownUrl = /* @__PURE__ */ new URL(${JSON.stringify(place)}, __bundleRoot).href;
const __ownFolder = /* @__PURE__ */ __path(/* @__PURE__ */ new URL('.', __ownUrl));`,
        define: {
          'import.meta.url': '__ownUrl',
          'import.meta.dirname': '__ownFolder',
          'import.meta.main': 'false',
        },
      });
      return { contents: code, loader: 'js' };
    });
    // In pieces an import() of a CommonJS package has a default export and no names, and would fail only when it runs.
    onResolve({ filter: /^[^.]/ }, ({ kind, path, importer }) => {
      const isOwn = /\.(ts|mjs)$/.test(importer) && !importer.includes('node_modules');
      if (kind !== 'dynamic-import' || !isOwn) return undefined;
      return {
        errors: [
          { text: `import('${path}'): load the package by require(), as shared/src/config/yaml.ts does` },
        ],
      };
    });
    // dockerode can speak to engines over ssh and to BuildKit; we never do (worker/src/sandbox/engine/client.ts).
    onResolve({ filter: /^(ssh2|cpu-features|@grpc\/.*)$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/** Our sources below `name`, from the root, without what only tests and builds use. */
async function sourcesOf(name) {
  const entries = await readdir(join(ROOT, name), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/(^|\/)(node_modules|test|fixtures|\.turbo|__pycache__)\//.test(path));
}

/** One file for each entry, and pieces that are loaded when they are needed, so that a command starts with its own code only. */
async function compile(entries, out) {
  for (const entry of entries) {
    // Whoever starts a command or a thread names its source: a file is there, and loads what the source became.
    const place = join(out, entry);
    await mkdir(dirname(place), { recursive: true });
    const up = relative(dirname(entry), '.').split(sep).join('/');
    await writeFile(place, `import '${up}/${CODE}/${nameOf(entry)}.mjs';\n`);
  }
  await build({
    entryPoints: entries.map((entry) => ({ in: join(ROOT, entry), out: nameOf(entry) })),
    outdir: join(out, CODE),
    outExtension: { '.js': '.mjs' },
    chunkNames: 'piece-[hash]',
    splitting: true,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    legalComments: 'eof',
    logLevel: 'warning',
    // Optional accelerators of their packages: loaded in a try, absent here.
    external: ['msgpackr-extract', 'bufferutil', 'utf-8-validate', 'node-linux-*', '*.node'],
    banner: { js: BANNER },
    plugins: [mirrored],
  });
}

/** `worker/src/threads/thread.ts` becomes `worker-src-threads-thread`. */
const nameOf = (entry) => entry.replace(/\.\w+$/, '').replaceAll('/', '-');

/** Whatever our sources read at run time: Lua, shell, prompts, tables, Python, and a built page. */
async function copyTexts(out) {
  for (const path of (await Promise.all(PACKAGES.map(sourcesOf))).flat()) {
    const isPage = /^producer\/page\/dist\//.test(path);
    const isText = /^\w+\/(src|data|python)\//.test(path) && !/\.(ts|tsx|pyc)$/.test(path);
    if (isPage || isText) await cp(join(ROOT, path), join(out, path));
  }
}

const launcher = (entry) => `#!/bin/sh
# Runs the bundled command on the Node beside it.
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd) || exit 12
exec "$here/bin/node" "$here/${entry}" "$@"
`;

async function addPrograms(out) {
  await mkdir(join(out, 'bin'), { recursive: true });
  const require = createRequire(import.meta.url);
  const node = join(dirname(require.resolve(`node-linux-${process.arch}/package.json`)), 'bin', 'node');
  await cp(node, join(out, 'bin', 'node'));
  for (const [name, entry] of Object.entries(COMMANDS)) {
    await writeFile(join(out, 'bin', name), launcher(entry));
    await chmod(join(out, 'bin', name), 0o755);
  }
  try {
    await cp(await fetchedServer(join(ROOT, '.swefarm/bin')), join(out, 'bin', 'valkey-server'));
  } catch (error) {
    console.error(`bundle: without a Redis server, so the first node must have one: ${error.message}`);
  }
}

/** Names the content, so that a node can tell whether its local copy is this one. */
async function writeId(out) {
  const hash = createHash('sha256');
  for (const file of (await readdir(out, { recursive: true, withFileTypes: true })).sort(byPath)) {
    if (file.isFile()) hash.update(file.name).update(await readFile(join(file.parentPath, file.name)));
  }
  await writeFile(join(out, 'bundle-id'), `${hash.digest('hex').slice(0, 16)}\n`);
}
const byPath = (a, b) => (join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1);

const { values } = parseArgs({ options: { out: { type: 'string' } } });
const target = resolve(values.out ?? join(ROOT, 'dist/swefarm'));
const draft = `${target}.draft-${process.pid}`;
await rm(draft, { recursive: true, force: true });
await mkdir(draft, { recursive: true });
const threads = (await Promise.all(PACKAGES.map(sourcesOf))).flat().filter((path) => THREAD.test(path));
await compile([...Object.values(COMMANDS), ...threads], draft);
await ensurePage(() => console.error('bundle: the page is built'));
await copyTexts(draft);
await addPrograms(draft);
await cp(join(ROOT, 'slurm'), join(draft, 'slurm'), {
  recursive: true,
  filter: (path) => !path.endsWith('.mjs'),
});
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
const own = { type: 'module', private: true, version };
await writeFile(join(draft, 'package.json'), `${JSON.stringify(own)}\n`);
await writeId(draft);
const size = (await readdir(draft, { recursive: true, withFileTypes: true })).filter((file) => file.isFile());
let bytes = 0;
for (const file of size) bytes += (await stat(join(file.parentPath, file.name))).size;
// A bundle that nodes run from right now stays whole under its old name until the new one is.
await rm(`${target}.old`, { recursive: true, force: true });
await rename(target, `${target}.old`).catch((error) => {
  if (error.code !== 'ENOENT') throw error;
});
await rename(draft, target);
await rm(`${target}.old`, { recursive: true, force: true });
console.error(
  `bundle: ${size.length} files, ${(bytes / 1024 ** 2).toFixed(0)} MiB: ${relative(process.cwd(), target) || target}`,
);
