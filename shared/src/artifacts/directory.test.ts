import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { directoryArtifacts, writeError } from './directory.ts';

const ONE = { attempt: 1, claim: 'claim1' };

let root = '';
beforeEach(async () => {
  root = temporaryFolder('artifacts');
});
const open = (budgetBytes = 1000) => directoryArtifacts(root, { budgetBytes, ttlSeconds: 60 });

test('put, get, replace, remove', async () => {
  const store = open();
  const locator = await store.put('r.i.0', ONE, Buffer.from('one'));
  expect(await store.put('r.i.0', ONE, Buffer.from('two'))).toBe(locator);
  expect((await store.get(locator)).toString()).toBe('two');
  expect(await readdir(join(root, 'r'))).toEqual(['r.i.0.1.claim1.swefarm.json.gz']);
  await store.remove(locator);
  await store.remove(locator);
  await expect(store.get(locator)).rejects.toMatchObject({ code: 'artifact_missing' });
});

test('the budget counts artifacts only', async () => {
  await writeFile(join(root, 'theirs.bin'), Buffer.alloc(5000));
  const store = open(100);
  await store.put('r.i.0', ONE, Buffer.alloc(60));
  await expect(store.put('r.i.1', ONE, Buffer.alloc(60))).rejects.toMatchObject({
    code: 'artifact_budget',
    retryable: true,
  });
  expect(await open(100).usage()).toEqual({ used_bytes: 60, budget_bytes: 100, artifacts: 1 });
  await store.removeRun('r');
  expect(await readdir(root)).toEqual(['theirs.bin']);
  await store.put('r.i.1', ONE, Buffer.alloc(60));
});

test('expired artifacts are removed, other files stay', async () => {
  const locator = await open().put('old.i.0', ONE, Buffer.from('x'));
  const young = await open().put('young.i.0', ONE, Buffer.from('x'));
  await utimes(fileURLToPath(locator), 1, 1);
  await mkdir(join(root, 'old', 'keep'));
  expect(await open().usage()).toMatchObject({ artifacts: 1 });
  expect(await readdir(join(root, 'old'))).toEqual(['keep']);
  expect((await open().get(young)).toString()).toBe('x');
});

test('the folder of a run without artifacts is removed', async () => {
  await open().put('a.i.0', ONE, Buffer.from('x'));
  const old = await open().put('b.i.0', ONE, Buffer.from('x'));
  await utimes(fileURLToPath(old), 1, 1);
  await open().usage();
  expect(await readdir(root)).toEqual(['a']);
});

test('a full disk and an unwritable folder have codes of their own, and leave no partial file', async () => {
  const store = open(1e9);
  await writeFile(join(root, 'r'), 'a file where a folder should be');
  await expect(store.put('r.i.0', ONE, Buffer.from('x'))).rejects.toMatchObject({
    code: 'artifact_store',
    retryable: true,
  });
  const enospc = await writeFile('/dev/full', 'x').catch((error: unknown) => error);
  expect(writeError(enospc, '/a')).toMatchObject({ code: 'artifact_disk_full', retryable: true });
  expect(await readdir(root)).toEqual(['r']);
});

test('an artifact is listed with its attempt and claim', async () => {
  const store = open();
  await store.put('r.i.0', ONE, Buffer.from('new'));
  await writeFile(join(root, 'r', 'r.i.0.1.swefarm.json.gz'), 'of no claim');
  const listed = (await Array.fromAsync(store.runParts('r'))).flat();
  expect(listed).toMatchObject([{ rollout_id: 'r.i.0', attempt: 1, claim: 'claim1' }]);
});

test('locators outside of the directory are refused', async () => {
  await expect(open().remove('file:///etc/x.swefarm.json.gz')).rejects.toMatchObject({
    code: 'bad_artifact_locator',
  });
  await expect(open().get('file:///etc/passwd')).rejects.toMatchObject({ code: 'bad_artifact_locator' });
  const stop = AbortSignal.abort(new Error('stop'));
  await expect(open().put('r.i.0', ONE, Buffer.from('x'), stop)).rejects.toThrow('stop');
});
