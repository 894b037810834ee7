// Writes the compiled commands and the data files of sources to a folder: the common part of the bundle for clusters and of the npm package.
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { ensurePage } from '../gateway/src/page/built.ts';
import { nameOf } from '../shared/bin/compiled.mjs';
import { thirdPartyLicences } from './licences.mjs';
import { compile, PACKAGES, ROOT, sourcesOf } from './pieces.mjs';

/** Entry file of each command, relative to the root. */
export const COMMANDS = {
  swefarm: 'producer/bin/swefarm.mjs',
  'swefarm-worker': 'worker/bin/swefarm-worker.mjs',
};
const CODE = 'code';

/** Writes commands, data files, the built page and the licences of the compiled packages to the folder `out`. */
export async function writeTree(out) {
  await addCode(out);
  await ensurePage(() => console.error('building the page'));
  await copyTexts(out);
  await cp(join(ROOT, 'LICENSE'), join(out, 'LICENSE'));
}

/** Writes the compiled files and, because commands are started by the paths of their sources, a file at each path that loads them. */
async function addCode(out) {
  const sources = Object.values(COMMANDS);
  const { outputFiles, metafile } = await compile(sources, {
    folder: join(out, CODE),
    root: "new URL('../', import.meta.url)",
  });
  await mkdir(join(out, CODE), { recursive: true });
  for (const { path, contents } of outputFiles) await writeFile(path, contents);
  for (const source of sources) {
    await mkdir(join(out, dirname(source)), { recursive: true });
    const up = relative(dirname(source), '.').split(sep).join('/');
    const text = `#!/usr/bin/env node\nimport '${up}/${CODE}/${nameOf(source)}.mjs';\n`;
    await writeFile(join(out, source), text, { mode: 0o755 });
  }
  await writeFile(join(out, 'THIRD_PARTY_LICENSES'), await thirdPartyLicences(Object.keys(metafile.inputs)));
}

/** Copies the files that sources read at run time: Lua, shell, prompts, tables, Python, the built page. */
async function copyTexts(out) {
  for (const path of (await Promise.all(PACKAGES.map(sourcesOf))).flat()) {
    const isPage = /^gateway\/page\/dist\//.test(path);
    const isText = /^\w+\/(src|cards|data|python)\//.test(path) && !/\.(ts|tsx|pyc)$/.test(path);
    const isTest = /^producer\/python\/(tests\/|(build|check)\.sh$)/.test(path);
    if (isPage || (isText && !isTest)) await cp(join(ROOT, path), join(out, path));
  }
}
