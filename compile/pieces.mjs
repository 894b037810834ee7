/**
 * Compiles commands and threads with all that they load into few pieces, so that Node reads a dozen files at a start in place of a
 * thousand.
 */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { build, transform } from 'esbuild';
import { nameOf } from '../shared/bin/compiled.mjs';

export const ROOT = resolve(import.meta.dirname, '..');
/** Workspaces with sources of commands. The testkit is for tests only. */
export const PACKAGES = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).workspaces.filter(
  (name) => name !== 'testkit',
);
/** Threads are separate files with this ending; `shared/src/imports.test.ts` checks that no other file is started. */
const THREAD = /(^|[./])thread\.ts$/;
/** The line by which a source loads a package at its first use; it is removed, so that the bundler sees the import. */
const REQUIRE = 'const require = createRequire(import.meta.url);';
/** A source starts a thread by the path of its source; the piece is beside it. */
const STARTED = /new URL\('\.\/((?:\w+\.)?thread)\.ts', import\.meta\.url\)/g;

/** Sources below `name`, relative to the root, without those of tests and builds. */
export async function sourcesOf(name) {
  const entries = await readdir(join(ROOT, name), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/(^|\/)(node_modules|test|fixtures|\.turbo|__pycache__)\//.test(path));
}

/** The exports of each package. */
export const FRONTS = PACKAGES.filter((name) => name !== 'producer').map((name) => `${name}/src/index.ts`);
/** `import { a } from '@swefarm/x';` and the same as `const { a } = await import(…)`. */
const OWN_IMPORT =
  /^import \{([^}]*)\} from '@swefarm\/(\w+)';|(?<=const )\{ (\w+) \} = await import\('@swefarm\/(\w+)'\)/gm;
/** The file that defines each name of a package's front. */
const fronts = new Map(
  await Promise.all(
    FRONTS.map(async (front) => {
      const text = await readFile(join(ROOT, front), 'utf8');
      const exports = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '(.*)';/gm)];
      const files = exports.flatMap(([, names, from]) =>
        namesIn(names).map((one) => [one, join(ROOT, dirname(front), from)]),
      );
      return [front.split('/')[0], new Map(files)];
    }),
  ),
);
function namesIn(list) {
  const names = list.split(',').map((name) => name.trim());
  return names.filter((name) => name !== '' && !name.startsWith('type '));
}

/**
 * Imports each name from its file in place of the package's index, so that a command has only the files that it uses.
 */
export const pastFronts = (text) =>
  text.replace(OWN_IMPORT, (_, list, name, one, lazy) => {
    const fileOf = (each) => JSON.stringify(fronts.get(name ?? lazy)?.get(each.split(' as ')[0].trim()));
    if (lazy) return `{ ${one} } = await import(${fileOf(one)})`;
    return namesIn(list)
      .map((each) => `import { ${each} } from ${fileOf(each)};`)
      .join(' ');
  });

/** Sources find files by `import.meta.url`, which becomes their path below `__ownRoot`; the head of each piece defines it. */
const inPlace = {
  name: 'in-place',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
      const place = relative(ROOT, path).split(sep).join('/');
      const own = PACKAGES.includes(place.split('/')[0] ?? '') && !place.includes('node_modules/');
      if (!own) return undefined;
      const text = pastFronts(await readFile(path, 'utf8'));
      if (!text.includes('import.meta')) return { contents: text, loader: 'ts' };
      const thread = (_, name) =>
        `new URL('./${nameOf(join(dirname(place), `${name}.ts`))}.mjs', __ownPieces)`;
      const { code } = await transform(text.replace(REQUIRE, '').replace(STARTED, thread), {
        loader: 'ts',
        sourcefile: place,
        banner: `import { fileURLToPath as __path } from 'node:url';
const __ownUrl = /* @__PURE__ */ new URL(${JSON.stringify(place)}, __ownRoot).href;
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
      if (kind !== 'dynamic-import' || !isOwn || path.startsWith(ROOT)) return undefined;
      return {
        errors: [
          { text: `import('${path}'): load the package by require(), as shared/src/config/yaml.ts does` },
        ],
      };
    });
    // dockerode's support of ssh and BuildKit is unused (sandbox/src/engine/client.ts).
    onResolve({ filter: /^(ssh2|cpu-features|@grpc\/.*)$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/**
 * The pieces of these sources and of all threads, below `folder`, by esbuild: what was made (`outputFiles`) and of what (`metafile`).
 * `root`: a JavaScript expression for the URL under which the files that sources ask for lie; `import.meta.url` is that of a piece.
 */
export async function compile(sources, { folder, root }) {
  const threads = (await Promise.all(PACKAGES.map(sourcesOf))).flat().filter((path) => THREAD.test(path));
  return await build({
    entryPoints: [...sources, ...threads].map((source) => ({ in: join(ROOT, source), out: nameOf(source) })),
    absWorkingDir: ROOT,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'piece-[hash]',
    splitting: true,
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    legalComments: 'eof',
    logLevel: 'warning',
    // Optional accelerators, which their packages load in a try.
    external: ['msgpackr-extract', 'bufferutil', 'utf-8-validate', 'node-linux-*', '*.node'],
    // CommonJS code in pieces expects these.
    banner: {
      js: `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);
const __filename = import.meta.filename, __dirname = import.meta.dirname;
const __ownPieces = import.meta.url, __ownRoot = ${root};`,
    },
    plugins: [inPlace],
  });
}
