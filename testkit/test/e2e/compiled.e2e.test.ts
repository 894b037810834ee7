/** Tests compiled commands: the commands of a checkout start from pieces, but never from pieces of changed sources. */
import { cp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { WORKSPACES } from '../../house/tree.ts';
import { run } from '../../src/launchers/run.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { linkPackages } from './oldtree.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PARTS = [...WORKSPACES, 'compile'];
const FILES = ['package.json', 'package-lock.json', 'tsconfig.json'];

let root = '';
beforeAll(async () => {
  root = temporaryFolder('compiled');
  const isOurs = (path: string): boolean => !/\/(node_modules|dist|\.turbo|test|fixtures)$/.test(path);
  for (const name of PARTS) await cp(join(ROOT, name), join(root, name), { recursive: true, filter: isOurs });
  for (const name of FILES) await cp(join(ROOT, name), join(root, name));
  await linkPackages(root);
  // Replaces the link to this repository's record of installed packages by a separate record.
  await rm(packageRecord());
  await writeFile(packageRecord(), '{"packages":{}}');
});

const SUMMARIES = 'producer/src/cli/commands.ts';
const WORKER_HELP = 'A stateless worker of the farm';

const packageRecord = (): string => join(root, 'node_modules/.package-lock.json');
const pieces = (): string => join(root, 'node_modules/.cache/swefarm-pieces');
const compile = () => run(process.execPath, ['compile/checkout.mjs'], { cwd: root });
const helpOf = async (path: string): Promise<string> =>
  (await run(process.execPath, [path, '--help'], { cwd: root })).stdout;
const swefarm = () => helpOf('producer/bin/swefarm.mjs');
const worker = () => helpOf('worker/bin/swefarm-worker.mjs');

/** Replaces `from` in the file by text of the same length, and restores the file's times. */
async function edit(path: string, from: string, to: string): Promise<void> {
  const file = join(root, path);
  const { atime, mtime } = await stat(file);
  const text = await readFile(file, 'utf8');
  expect(text).toContain(from);
  expect(to).toHaveLength(from.length);
  await writeFile(file, text.replaceAll(from, to));
  await utimes(file, atime, mtime);
}

async function damagePieces(): Promise<void> {
  for (const name of await readdir(pieces()))
    if (name.endsWith('.mjs')) await writeFile(join(pieces(), name), '');
}

/** Replaces `from` in the pieces and updates their records, so that the output shows whether a command uses the pieces. */
async function markPieces(from: string, to: string): Promise<void> {
  const folder = pieces();
  const marked = new Map<string, readonly number[]>();
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.mjs'))) {
    const text = await readFile(join(folder, name), 'utf8');
    if (!text.includes(from)) continue;
    await writeFile(join(folder, name), text.replaceAll(from, to));
    const { mtimeMs, ctimeMs, size } = await stat(join(folder, name));
    marked.set(`node_modules/.cache/swefarm-pieces/${name}`, [mtimeMs, ctimeMs, size]);
  }
  expect(marked.size).toBeGreaterThan(0);
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.json'))) {
    const made = JSON.parse(await readFile(join(folder, name), 'utf8')) as { files: [string, ...number[]][] };
    const files = made.files.map(([path, ...stamp]) => [path, ...(marked.get(path) ?? stamp)]);
    await writeFile(join(folder, name), JSON.stringify({ ...made, files }));
  }
}

test('commands load compiled files; a changed source is used at once, until it is compiled', async () => {
  expect(await swefarm()).toContain('queue the rol');
  await compile();
  await markPieces('queue the rol', 'QUEUE THE ROL');
  await markPieces(WORKER_HELP, WORKER_HELP.toUpperCase());
  expect(await swefarm()).toContain('QUEUE THE ROL');
  expect(await worker()).toContain(WORKER_HELP.toUpperCase());

  await edit(SUMMARIES, 'queue the rol', 'queue the ROL');
  expect(await swefarm()).toContain('queue the ROL');
  // The sources of the worker have not changed.
  expect(await worker()).toContain(WORKER_HELP.toUpperCase());

  await compile();
  await markPieces('queue the ROL', 'Queue The Rol');
  expect(await swefarm()).toContain('Queue The Rol');
  expect(await worker()).toContain(WORKER_HELP);
});

test.each([
  ['a source of another package changed', () => edit('shared/src/failures/errors.ts', '/** ', '/**\n')],
  ['npm changed the packages', () => writeFile(packageRecord(), '{}')],
  ['pieces are damaged', damagePieces],
  ['the piece of a thread is gone', () => rm(join(pieces(), 'worker-src-threads-thread.mjs'))],
  ['a record is damaged', () => writeFile(join(pieces(), 'worker-src-main.json'), '{"root":')],
  ['all of them are gone', () => rm(pieces(), { recursive: true })],
])('when %s, a command runs from its sources', async (_, spoil) => {
  await compile();
  await markPieces(WORKER_HELP, WORKER_HELP.toUpperCase());
  expect(await worker()).toContain(WORKER_HELP.toUpperCase());
  await spoil();
  expect(await worker()).toContain(WORKER_HELP);
});

test('pieces are removed two weeks after their replacement, whatever their age', async () => {
  await compile();
  const made = await readdir(pieces());
  const grow = async (): Promise<void> => {
    for (const name of made) await utimes(join(pieces(), name), 0, 0).catch(() => undefined);
    await compile();
  };
  await edit('sandbox/src/rootfs/unpack.ts', 'process ended with', 'PROCESS ended with');
  await grow();
  expect(await readdir(pieces())).toEqual(expect.arrayContaining(made));
  await grow();
  expect(await readdir(pieces())).not.toEqual(expect.arrayContaining(made));
});
