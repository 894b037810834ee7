import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeCertificates, startRedis, type TestRedis, until } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { createLog, freePort, openFarm, writeAddress } from '../src/index.ts';
import type { RedisAddress } from '../src/redis/address.ts';
import { redisUrl, refused, testConfig, testInstance, testResult, testRun } from './farm.ts';

let dir = '';
beforeAll(async () => {
  dir = temporaryFolder('connect');
});

test('TLS with a custom CA as an ACL user; without the CA the error has a remedy', async () => {
  const { ca, cert, key } = await makeCertificates(dir);
  const tlsPort = await freePort();
  await using redis = await startRedis({
    settings: [
      `tls-port ${tlsPort}`,
      `tls-cert-file ${cert}`,
      `tls-key-file ${key}`,
      `tls-ca-cert-file ${ca}`,
      'tls-auth-clients no',
      'user farmer on >se:cr@t ~{acl}:* &* +@all -@dangerous +info +keys',
    ],
  });
  expect(redis.port).not.toBe(tlsPort);
  const url = `rediss://farmer:${encodeURIComponent('se:cr@t')}@localhost:${tlsPort}`;
  const config = testConfig({ redis_url: url, redis_prefix: 'acl', redis_tls_ca: ca });
  await using farm = await openFarm(config, 'producer');
  const record = testRun();
  await farm.runs.create(record, [testInstance()]);
  expect(await farm.commit(record, testResult(record.run_id, 0))).toMatchObject({ status: 'committed' });

  const without = testConfig({ redis_url: url });
  await expect(openFarm(without, 'producer')).rejects.toMatchObject({ code: 'redis_tls' });
  const foreign = openFarm({ ...config, redis_prefix: '{other}' }, 'producer');
  await expect(foreign).rejects.toMatchObject({
    code: 'redis_auth',
    message: expect.not.stringContaining('cr@t'),
  });
});

test('wrong password, absent server and wrong CA file have own errors without passwords', async () => {
  const wrong = redisUrl().replace(/:[^:@/]+@/, ':wrong-password@');
  const unauthorized = openFarm(testConfig({ redis_url: wrong }), 'worker');
  await refused(unauthorized, 'redis_auth');
  await expect(unauthorized).rejects.not.toThrow(/wrong-password/);
  const port = await freePort();
  const absent = openFarm(testConfig({ redis_url: `redis://:pw@127.0.0.1:${port}` }), 'producer');
  const reason = `^Redis does not answer at redis://127.0.0.1:${port}: .*ECONNREFUSED.*is it running`;
  await refused(absent, 'redis_unreachable', new RegExp(reason));
  const noCa = testConfig({ redis_url: 'rediss://127.0.0.1:1', redis_tls_ca: join(dir, 'nothing.crt') });
  await expect(openFarm(noCa, 'producer')).rejects.toMatchObject({ code: 'usage' });
});

test('a worker waits at its start for Redis', async () => {
  const port = await freePort();
  const lines: string[] = [];
  const log = createLog({ log_level: 'info', log_format: 'json' }, {}, { write: (line) => lines.push(line) });
  const opening = openFarm(testConfig({ redis_url: `redis://127.0.0.1:${port}` }), 'worker', { log });
  const failing = expect(opening).rejects.toMatchObject({ code: 'redis_auth' });
  await expect.poll(() => lines.join('')).toContain('Redis does not answer');
  await using _redis = await startRedis({ port });
  // The missing password shows that the worker reached the server.
  await failing;
});

test('a worker waits at its start for a Redis that refuses writes, and logs it once', async () => {
  await using redis = await startRedis();
  await redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '1');
  const output: string[] = [];
  const config = testConfig({ redis_url: redis.url });
  const opening = openFarm(config, 'worker', { onWait: (text) => output.push(text) });
  await Promise.race([opening, until(() => output.length > 0)]);
  await redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '0');
  await using farm = await opening;
  expect(farm.id).not.toBe('');
  expect(output).toEqual([expect.stringMatching(/refuses commands: NOREPLICAS.* Retrying for 60 s\.$/)]);
});

test('a producer waits for its patience, logs it once, and then fails with the reason', async () => {
  const port = await freePort();
  const output: string[] = [];
  const opening = openFarm(testConfig({ redis_url: `redis://127.0.0.1:${port}` }), 'producer', {
    patienceSeconds: 0.6,
    onWait: (text) => output.push(text),
  });
  await expect(opening).rejects.toMatchObject({ code: 'redis_unreachable' });
  expect(output).toEqual([expect.stringMatching(/^Redis does not answer at .* Retrying for 0\.6 s\.$/)]);
});

test('a killed and restarted Redis loses nothing, and worker and collector continue', async () => {
  await using redis = await startRedis({ settings: ['appendfsync always'] });
  const config = testConfig({ redis_url: redis.url });
  await using worker = await openFarm(config, 'worker');
  await using producer = await openFarm(config, 'producer');
  const record = testRun();
  await producer.runs.create(record, [testInstance()]);
  await worker.commit(record, testResult(record.run_id, 0));
  const seen = await producer.results.read(record.run_id, '0');

  await redis.kill();
  const waiting = producer.results.read(record.run_id, seen.last_id, { blockMs: 30_000 });
  const claim = worker.journal.claim(`${record.run_id}.a__b.c-1.1`, { worker: 'w', node: 'n' });
  await refused(producer.runs.get(record.run_id), 'redis_unreachable');
  await redis.restart();

  expect(await claim).toMatchObject({ status: 'claimed', attempt: 1 });
  expect(await worker.commit(record, testResult(record.run_id, 0))).toMatchObject({ status: 'committed' });
  expect(await worker.commit(record, testResult(record.run_id, 1))).toMatchObject({ status: 'committed' });
  expect((await waiting).results.map(({ result }) => result.rollout_index)).toEqual([1]);
  expect((await producer.results.read(record.run_id, '0')).results).toHaveLength(2);
});

test('clients of a demoted leader find the new one', async () => {
  await using old = await startRedis({ settings: ['repl-diskless-sync-delay 0'] });
  await using next = await startRedis();
  const at = ({ port, url }: TestRedis, epoch: number): RedisAddress => ({
    ...{ format: 'swefarm-redis-1', host: '127.0.0.1', username: 'default', node: 'n', job: null },
    ...{ port, password: new URL(url).password, epoch },
  });
  const file = join(dir, 'failover.json');
  await writeAddress(file, at(old, 1));
  await using worker = await openFarm(testConfig({ redis_url: `file:${file}`, redis_prefix: 'f' }), 'worker');
  const record = testRun();
  await worker.runs.create(record, [testInstance()]);

  await next.cli('CONFIG', 'SET', 'masterauth', new URL(old.url).password);
  await next.cli('REPLICAOF', '127.0.0.1', String(old.port));
  while (!(await next.cli('INFO', 'replication')).includes('master_link_status:up')) await sleep(50);
  await next.cli('REPLICAOF', 'NO', 'ONE');
  await old.cli('REPLICAOF', '127.0.0.1', String(next.port));
  await writeAddress(file, at(next, 2));

  const early = worker.commit(record, testResult(record.run_id, 0));
  await refused(early, 'redis_unreachable', /refuses commands: READONLY/);
  expect(await worker.commit(record, testResult(record.run_id, 0))).toMatchObject({ status: 'committed' });
  expect((await worker.results.read(record.run_id, '0')).results).toHaveLength(1);
});

test('warnings name problems of the server; the farm id is stable', async () => {
  await using redis = await startRedis({
    settings: ['maxmemory 100mb', 'maxmemory-policy allkeys-lru', 'appendonly no'],
  });
  const config = testConfig({ redis_url: redis.url, redis_durability: 'best_effort' });
  await using one = await openFarm(config, 'producer');
  await using two = await openFarm(config, 'worker');
  await using other = await openFarm({ ...config, redis_prefix: '{other}' }, 'worker');
  expect(one.id).toBe(two.id);
  expect(one.id).not.toBe(other.id);
  expect(one.warnings).toEqual([
    expect.stringContaining('allkeys-lru'),
    expect.stringContaining('append-only'),
    expect.stringContaining('maxmemory is'),
  ]);
});
