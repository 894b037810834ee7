/**
 * Compiles commands and threads, with all modules that they load, into a dozen files ("pieces"). A command that starts from the sources
 * reads a thousand files.
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
/** Names of files that are started as threads; `shared/src/imports.test.ts` checks that no other file is started as a thread. */
const THREAD = /(^|[./])thread\.ts$/;
/** Line of sources that load a package with `require` at its first use. It is removed, so that esbuild resolves the calls of `require`. */
const REQUIRE = 'const require = createRequire(import.meta.url);';
/** Expression by which a source starts a thread. It names the source of the thread; the compiled expression names the piece. */
export const STARTED = /new URL\('\.\/((?:\w+\.)?thread)\.ts', import\.meta\.url\)/g;

/** Returns the paths of all files of the package `name`, relative to the root, without folders of tests, caches and dependencies. */
export async function sourcesOf(name) {
  const entries = await readdir(join(ROOT, name), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/(^|\/)(node_modules|test|fixtures|__snapshots__|\.turbo|__pycache__)\//.test(path));
}

/** Files with the exports of each package; the producer has none. */
export const FRONTS = PACKAGES.filter((name) => name !== 'producer').map((name) => `${name}/src/index.ts`);
/** Matches `import { a } from '@swefarm/x';`, and `{ a } = await import('@swefarm/x')` after `const`. */
const OWN_IMPORT =
  /^import \{([^}]*)\} from '@swefarm\/(\w+)';|(?<=const )\{ (\w+) \} = await import\('@swefarm\/(\w+)'\)/gm;
/** For each package, the file that defines each exported name. */
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
 * Replaces imports from the index of a package by imports from the files that define the names, so that pieces include no unused files.
 */
export const pastFronts = (text) =>
  text.replace(OWN_IMPORT, (_, list, name, one, lazy) => {
    const fileOf = (each) => JSON.stringify(fronts.get(name ?? lazy)?.get(each.split(' as ')[0].trim()));
    if (lazy) return `{ ${one} } = await import(${fileOf(one)})`;
    return namesIn(list)
      .map((each) => `import { ${each} } from ${fileOf(each)};`)
      .join(' ');
  });

/** Replaces `import.meta.url` of each source by its path below `__ownRoot`, because sources find data files by this URL. */
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
    // In a piece, import() of a CommonJS package returns a default export without the named exports. The build refuses such calls.
    onResolve({ filter: /^[^.]/ }, ({ kind, path, importer }) => {
      const isOwn = /\.(ts|mjs)$/.test(importer) && !importer.includes('node_modules');
      if (kind !== 'dynamic-import' || !isOwn || path.startsWith(ROOT)) return undefined;
      return {
        errors: [
          { text: `import('${path}'): load the package by require(), as shared/src/config/yaml.ts does` },
        ],
      };
    });
    // swefarm does not use dockerode's support of ssh and BuildKit (sandbox/src/engine/client.ts), so these packages become empty.
    onResolve({ filter: /^(ssh2|cpu-features|@grpc\/.*)$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    onLoad({ filter: /.*/, namespace: 'absent' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/**
 * Compiles these sources and all threads with esbuild. Returns the pieces (`outputFiles`, with paths below `folder`) and `metafile`.
 * `root`: JavaScript expression for the URL of the folder with the sources' data files; `import.meta.url` in it is the URL of a piece.
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
    // Optional native packages, which the pieces do not include.
    external: ['msgpackr-extract', 'bufferutil', 'utf-8-validate', 'node-linux-*', '*.node'],
    // Names that CommonJS code in the pieces expects, and the URLs that the plugin `inPlace` inserts.
    banner: {
      js: `import { createRequire as __createRequire } from 'node:module';
const require = __createRequire(import.meta.url);
const __filename = import.meta.filename, __dirname = import.meta.dirname;
const __ownPieces = import.meta.url, __ownRoot = ${root};`,
    },
    plugins: [inPlace],
  });
}
