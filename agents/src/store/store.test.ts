import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockFile } from './exclusive.ts';
import { bundleLabels, findBundle, installBundle, isIntact, isLabelled, listBundles } from './store.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swefarm-store-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const never = new AbortController().signal;
const LOCK = 'a'.repeat(64);
let builds = 0;
const toy = (text = 'x', lock = LOCK) => ({
  name: 'toy',
  lock,
  version: '1.0',
  build: async (folder: string) => {
    builds++;
    mkdirSync(join(folder, 'bin'), { mode: 0o700 });
    writeFileSync(join(folder, 'bin/toy'), text, { mode: 0o700 });
    writeFileSync(join(folder, 'data'), 'data', { mode: 0o600 });
    symlinkSync('bin/toy', join(folder, 'link'));
  },
});

test('an installed bundle is found by name and lock, with readable files', async () => {
  expect(await findBundle(dir, 'toy', LOCK)).toBeNull();
  const { bundle, isNew } = await installBundle(dir, toy(), never);
  expect(isNew).toBe(true);
  expect(await findBundle(dir, 'toy', LOCK)).toEqual(bundle);
  expect(await findBundle(dir, 'toy', null)).toEqual(bundle);
  expect(await findBundle(dir, 'toy', 'b'.repeat(64))).toBeNull();
  expect(bundle.manifest).toMatchObject({ name: 'toy', lock: LOCK, version: '1.0', bytes: 5 });
  expect(
    ['', 'bin', 'bin/toy', 'data'].map((path) => lstatSync(join(bundle.folder, path)).mode & 0o777),
  ).toEqual([0o755, 0o755, 0o755, 0o644]);
});

test('the digest depends on names, contents and permissions alone', async () => {
  const digests = [];
  for (const [text, lock] of [
    ['x', 'a'],
    ['x', 'b'],
    ['y', 'c'],
  ] as const)
    digests.push((await installBundle(dir, toy(text, lock.repeat(64)), never)).bundle.manifest.digest);
  expect(digests[1]).toBe(digests[0]);
  expect(digests[2]).not.toBe(digests[0]);
  expect((await listBundles(dir)).length).toBe(3);
});

test('labels tell which bundles are installed, by name and lock', async () => {
  await installBundle(dir, toy(), never);
  const labels = await bundleLabels(dir);
  expect(labels).toEqual(['toy aaaaaaaaaaaa']);
  const named = (name: string, lock: string | null) => isLabelled(labels, name, lock);
  expect([named('toy', LOCK), named('toy', null), named('toy', 'b'.repeat(64)), named('to', null)]).toEqual([
    ...[true, true],
    ...[false, false],
  ]);
});

test('a second install of a lock builds nothing, unless it is to replace a damaged bundle', async () => {
  const { bundle } = await installBundle(dir, toy(), never);
  builds = 0;
  expect(await installBundle(dir, toy(), never)).toEqual({ bundle, isNew: false });
  expect(builds).toBe(0);
  writeFileSync(join(bundle.folder, 'data'), 'changed');
  expect(await isIntact(bundle)).toBe(false);
  const { bundle: repaired } = await installBundle(dir, { ...toy(), again: true }, never);
  expect(repaired.folder).toBe(bundle.folder);
  expect(await isIntact(repaired)).toBe(true);
  expect(readdirSync(join(dir, 'toy')).filter((name) => name.startsWith('.part'))).toEqual([]);
});

test('an intact folder stays when the same contents are installed again', async () => {
  const { bundle } = await installBundle(dir, toy('x', ''), never);
  const inode = lstatSync(bundle.folder).ino;
  await installBundle(dir, toy('y', ''), never);
  const { bundle: again } = await installBundle(dir, toy('x', ''), never);
  expect(lstatSync(again.folder).ino).toBe(inode);
  expect((await findBundle(dir, 'toy', null))?.manifest.digest).toBe(bundle.manifest.digest);
});

test('of installers at the same time one builds', async () => {
  builds = 0;
  const all = await Promise.all(Array.from({ length: 4 }, () => installBundle(dir, toy(), never)));
  expect(builds).toBe(1);
  expect(all.filter(({ isNew }) => isNew).length).toBe(1);
  expect(new Set(all.map(({ bundle }) => bundle.folder)).size).toBe(1);
});

test('a failed build leaves nothing, and the next install removes what a killed one left', async () => {
  const failing = { ...toy(), build: () => Promise.reject(new Error('no network')) };
  await expect(installBundle(dir, failing, never)).rejects.toThrow('no network');
  mkdirSync(join(dir, 'toy/.part-killed/bin'), { recursive: true });
  expect(await findBundle(dir, 'toy', null)).toBeNull();
  await installBundle(dir, toy(), never);
  expect(readdirSync(join(dir, 'toy')).filter((name) => name.startsWith('.part'))).toEqual([]);
});

test.each([
  ['../outside', 'the link to ../outside leaves the bundle'],
  ['/etc/passwd', 'the link to /etc/passwd leaves the bundle'],
])('a link to %s is refused', async (target, message) => {
  const build = async (folder: string) => symlinkSync(target, join(folder, 'link'));
  await expect(installBundle(dir, { ...toy(), build }, never)).rejects.toThrow(message);
  expect(await findBundle(dir, 'toy', null)).toBeNull();
});

test('a link to the place of the bundle in the sandbox is kept', async () => {
  const build = async (folder: string) => symlinkSync('/opt/swefarm/agents/toy/lib', join(folder, 'link'));
  const { bundle } = await installBundle(dir, { ...toy(), build }, never);
  expect(await isIntact(bundle)).toBe(true);
});

test('the lock of a killed process is free', async () => {
  const path = join(dir, 'lock');
  const code = `import { lockFile } from ${JSON.stringify(new URL('./exclusive.ts', import.meta.url).href)};
    await lockFile(${JSON.stringify(path)}, new AbortController().signal);
    console.log('locked'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  let free = false;
  const waiting = lockFile(path, never).then((lock) => {
    free = true;
    return lock;
  });
  expect(existsSync(path) && !free).toBe(true);
  child.kill('SIGKILL');
  await using _lock = await waiting;
  expect(free).toBe(true);
  const aborted = new AbortController();
  const second = lockFile(path, aborted.signal);
  aborted.abort(new Error('stopped'));
  await expect(second).rejects.toThrow('stopped');
  expect(readFileSync(path, 'utf8')).toBe('');
});
