// Builds the tarballs of all npm packages: `swefarm` with the compiled commands, and the libraries.
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../compile/pieces.mjs';
import { COMMANDS, writeTree } from '../compile/tree.mjs';
import { LIBRARIES, writeLibraries } from './libraries.mjs';

const run = promisify(execFile);

/** Writes the tarballs to `out`. Returns their file names in dependency order. `draft`: temporary folder, removed at the end. */
export async function packPackages(out, { draft, revision }) {
  const commands = join(draft, 'swefarm');
  await mkdir(commands, { recursive: true });
  await writeTree(commands);
  await describeCommands(commands, revision);
  await writeLibraries(join(draft, 'libraries'));
  const folders = [...LIBRARIES.map((name) => join(draft, 'libraries', name)), commands];
  await mkdir(out, { recursive: true });
  const names = [];
  for (const folder of folders) {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', out], {
      cwd: folder,
      maxBuffer: 1 << 26,
    });
    // npm 10 and 11 print an array, later versions an object with the names of the packages as keys.
    names.push(Object.values(JSON.parse(stdout))[0].filename);
  }
  await rm(draft, { recursive: true });
  return names;
}

/** Writes package.json, README and the commit, which becomes part of the software version. */
async function describeCommands(folder, revision) {
  const root = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const { name, version, description, license, type, engines, optionalDependencies } = root;
  const bin = Object.fromEntries(Object.entries(COMMANDS).map(([command, path]) => [command, `./${path}`]));
  const record = { name, version, description, license, type, bin, engines, optionalDependencies };
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(record, null, 2)}\n`);
  await writeFile(join(folder, 'bundle-id'), `${revision}\n`);
  await cp(join(ROOT, 'release/swefarm.md'), join(folder, 'README.md'));
}
