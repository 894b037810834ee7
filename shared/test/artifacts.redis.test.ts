import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { bareArtifact } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { encodeArtifact, isArtifactGone, openFarm, readArtifactFile } from '../src/index.ts';
import { keysOf, nth, testConfig, testFarm } from './farm.ts';

test('blobs are stored unchanged, replaced by the same attempt, and removal frees the budget', async () => {
  const config = testConfig({ artifact_budget_bytes: 1000 });
  await using farm = await openFarm(config, 'worker');
  const blob = randomBytes(400);
  const locator = await farm.artifacts.put('r.i.0', nth(1), blob);
  expect(locator).toBe('redis:r.i.0/claim1/1');
  expect((await farm.artifacts.get(locator)).equals(blob)).toBe(true);
  await farm.artifacts.put('r.i.0', nth(1), randomBytes(500));
  expect(await farm.artifacts.usage()).toEqual({ used_bytes: 500, budget_bytes: 1000, artifacts: 1 });
  await expect(farm.artifacts.put('r.i.1', nth(1), randomBytes(501))).rejects.toMatchObject({
    code: 'artifact_budget',
    retryable: true,
  });
  await farm.artifacts.put('r.i.1', nth(1), randomBytes(500));
  await farm.artifacts.remove(locator);
  await farm.artifacts.remove(locator);
  expect((await farm.artifacts.usage()).used_bytes).toBe(500);
  await expect(farm.artifacts.get(locator)).rejects.toMatchObject({ code: 'artifact_missing' });
  await expect(farm.artifacts.get('nonsense')).rejects.toMatchObject({ code: 'bad_artifact_locator' });
  await farm.artifacts.removeRun('r');
  expect((await keysOf(config)).filter((key) => key.includes('r.i'))).toEqual([]);
});

test('concurrent writers do not exceed the budget', async () => {
  await using farm = await testFarm({ artifact_budget_bytes: 10_000 });
  const puts = Array.from({ length: 50 }, (_, n) =>
    farm.artifacts.put(`r.i.${n}`, nth(1), randomBytes(1000)),
  );
  const ends = await Promise.allSettled(puts);
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
  expect((await farm.artifacts.usage()).used_bytes).toBe(10_000);
});

test('artifacts expire and free the budget', async () => {
  await using farm = await testFarm({ artifact_budget_bytes: 1000, artifact_ttl_seconds: 5 });
  const locator = await farm.artifacts.put('r.i.0', nth(1), randomBytes(1000));
  await new Promise((resolve) => setTimeout(resolve, 5_100));
  await expect(farm.artifacts.get(locator)).rejects.toMatchObject({ code: 'artifact_missing' });
  await farm.artifacts.put('r.i.1', nth(1), randomBytes(1000));
  expect(await farm.artifacts.usage()).toMatchObject({ used_bytes: 1000, artifacts: 1 });
});

test('artifacts of a directory are read without the setting', async () => {
  const dir = temporaryFolder('artifacts');
  const config = testConfig({ artifacts: `dir:${dir}` });
  await using worker = await openFarm(config, 'worker');
  await using producer = await openFarm({ ...config, artifacts: 'redis:' }, 'producer');
  const locator = await worker.artifacts.put('r.i.0', nth(2), Buffer.from('x'));
  expect(locator).toMatch(/^file:\/\/\/.*r\.i\.0\.2\.claim2\.swefarm\.json\.gz$/);
  expect((await producer.artifacts.get(locator)).toString()).toBe('x');
  await worker.artifacts.removeRun('r');
  expect(await readdir(dir)).toEqual([]);
});

test('both stores are read by locator; missing artifacts have a code', async () => {
  const dir = temporaryFolder('artifacts é%');
  const config = testConfig({ artifacts: `dir:${dir}` });
  await using inDirectory = await openFarm(config, 'worker');
  await using inRedis = await openFarm({ ...config, artifacts: 'redis:' }, 'worker');
  const content = bareArtifact({ patch: 'p' });
  const blob = await encodeArtifact(content);
  const file = await inDirectory.artifacts.put('r.i.0', nth(1), blob);
  const key = await inRedis.artifacts.put('r.i.0', nth(1), blob);
  for (const { artifacts } of [inDirectory, inRedis]) {
    expect(await Promise.all([file, key, null].map(artifacts.read))).toEqual([content, content, null]);
  }
  expect(await readArtifactFile(file)).toEqual(content);

  await inDirectory.artifacts.removeRun('r');
  const broken = await inRedis.artifacts.put('r.i.1', nth(1), Buffer.from('no gzip'));
  for (const gone of [file, broken, 'nonsense']) {
    expect(isArtifactGone(await inRedis.artifacts.read(gone).catch((error: unknown) => error))).toBe(true);
  }
  expect(isArtifactGone(new Error('ESTALE'))).toBe(false);
});

test('an artifact is listed with its attempt and claim, and found by its locator', async () => {
  await using farm = await testFarm();
  const locator = await farm.artifacts.put('r.i/a.0', nth(2), Buffer.from('new'));
  const listed = { rollout_id: 'r.i/a.0', attempt: 2, claim: 'claim2', locator };
  expect((await Array.fromAsync(farm.artifacts.runParts('r'))).flat()).toEqual([listed]);
  expect(String(await farm.artifacts.get(locator))).toBe('new');
});

test.each(['redis', 'directory'])('%s: an artifact grows by appends at a known length', async (kind) => {
  const dir = temporaryFolder('artifacts');
  const store = kind === 'redis' ? 'redis:' : `dir:${dir}`;
  await using farm = await testFarm({ artifacts: store, artifact_budget_bytes: 10 });
  const { artifacts } = farm;
  const locator = artifacts.locate('r.i.0', nth(1));
  const text = async () => (await artifacts.get(locator)).toString();
  expect(await artifacts.append('r.i.0', nth(1), Buffer.from('abc'), 0)).toBe(true);
  expect(await artifacts.append('r.i.0', nth(1), Buffer.from('def'), 3)).toBe(true);
  expect(await text()).toBe('abcdef');
  expect((await artifacts.usage()).used_bytes).toBe(6);
  // A lost part is noticed.
  expect(await artifacts.append('r.i.0', nth(1), Buffer.from('g'), 5)).toBe(false);
  expect(await artifacts.append('r.i.1', nth(1), Buffer.from('g'), 5)).toBe(false);
  await expect(artifacts.append('r.i.0', nth(1), Buffer.from('12345'), 6)).rejects.toMatchObject({
    code: 'artifact_budget',
  });
  expect(await text()).toBe('abcdef');
  expect(await artifacts.append('r.i.0', nth(1), Buffer.from('x'), 0)).toBe(true);
  expect(await text()).toBe('x');
  expect(await artifacts.put('r.i.0', nth(1), Buffer.from('yz'))).toBe(locator);
  expect(await text()).toBe('yz');
});

test('an append to Redis that is sent again appends once', async () => {
  await using farm = await testFarm();
  const append = (text: string, offset: number) =>
    farm.artifacts.append('r.i.0', nth(1), Buffer.from(text), offset);
  await append('abc', 0);
  expect(await append('def', 3)).toBe(true);
  expect(await append('def', 3)).toBe(true);
  expect((await farm.artifacts.get(farm.artifacts.locate('r.i.0', nth(1)))).toString()).toBe('abcdef');
  expect(await farm.artifacts.usage()).toMatchObject({ used_bytes: 6, artifacts: 1 });
});
