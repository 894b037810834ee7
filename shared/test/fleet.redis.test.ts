/** Redis with Sentinels, as a cluster, with client certificates, and failovers. */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  makeCertificates,
  type RedisFleet,
  startCluster,
  startRedis,
  startSentinels,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Farm, freePort, openFarm } from '../src/index.ts';
import { refused, testConfig, testInstance, testResult, testRun } from './farm.ts';

const BY = { worker: 'w', node: 'n' };

/** Makes each kind of call of a farm: scripts, transactions, the queue. */
async function committed(farm: Farm, index: number, runId: string): Promise<void> {
  const record = testRun({ run_id: runId });
  await farm.runs.create(record, [testInstance()]);
  const id = `${runId}.a__b.c-1.${index}`;
  await farm.jobs.enqueue(record, [id]);
  expect(await farm.journal.claim(id, BY)).toMatchObject({ status: 'claimed' });
  expect(await farm.commit(record, testResult(runId, index))).toMatchObject({ status: 'committed' });
  expect(await farm.jobs.missing([id])).toEqual([]);
}

describe('Sentinels', () => {
  let fleet: RedisFleet;
  beforeAll(async () => {
    fleet = await startSentinels({ sentinelPassword: 'of-the-sentinels' });
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  test('that refuse the login, do not know the master or are absent have errors of their own', async () => {
    const open = (redis_url: string, more = {}): Promise<Farm> =>
      openFarm(testConfig({ redis_url, redis_sentinel_password: 'of-the-sentinels', ...more }), 'producer');
    await refused(open(fleet.url, { redis_sentinel_password: 'wrong' }), 'redis_auth');
    const barn = open(fleet.url.replace('/farm', '/barn'));
    await refused(barn, 'redis_unreachable', /\/barn: .*No such master with that name/);
    const nobody = `redis+sentinel://127.0.0.1:${await freePort()}/farm`;
    await refused(open(nobody), 'redis_unreachable', /failed to connect to sentinel 127.*is it running/);
    await expect(open('redis+sentinel://127.0.0.1:1')).rejects.toThrow('names no master');
    const [port] = fleet.ports;
    const asServer = open(`redis://:of-the-sentinels@127.0.0.1:${port}`);
    await refused(asServer, 'redis_kind', /redis\+sentinel:\/\//);
    const [, replica] = fleet.nodes;
    const asReplica = open(fleet.url.replace(/@.*/, `@127.0.0.1:${replica?.port}`).replace('+sentinel', ''));
    await expect(asReplica).rejects.toThrow(/is a replica of 127\.0\.0\.1:\d+ and accepts no writes/);
  });

  test('after a failover worker and producer find the new master', async () => {
    const config = testConfig({ redis_url: fleet.url, redis_sentinel_password: 'of-the-sentinels' });
    await using worker = await openFarm(config, 'worker');
    await using producer = await openFarm(config, 'producer');
    const { run_id } = testRun();
    await committed(worker, 0, run_id);
    const [master, replica] = fleet.nodes;
    await expect
      .poll(() => replica?.command('XLEN', `${config.redis_prefix}:run:${run_id}:results`))
      .toBe('1\n');

    await master?.kill();
    await committed(worker, 1, run_id);
    await expect
      .poll(() => producer.runs.get(run_id).catch(() => null), { timeout: 60_000 })
      .toMatchObject({ run_id });
    const { results } = await producer.results.read(run_id, '0');
    expect(results.map(({ result }) => result.rollout_index)).toEqual([0, 1]);
    expect(await replica?.command('INFO', 'replication')).toContain('role:master');
  });
});

test('a cluster is found by any node, and followed when the slot moves or its node dies', async () => {
  await using fleet = await startCluster();
  const config = testConfig({ redis_url: fleet.url, redis_prefix: 'fleet' });
  await using worker = await openFarm(config, 'worker');
  const { run_id } = testRun();
  await committed(worker, 0, run_id);
  const owner = fleet.nodes.find(({ port }) => worker.address.includes(`:${port}, of`));
  expect(owner).toBeDefined();
  const slot = (await owner?.command('CLUSTER', 'KEYSLOT', config.redis_prefix))?.trim() ?? '';
  expect(await owner?.command('CLUSTER', 'COUNTKEYSINSLOT', slot)).not.toBe('0\n');

  // A replica is promoted; the former master redirects its clients.
  const replicaOf = await nodeOf(fleet.nodes, `:${owner?.port}@`);
  const replica = await findReplica(fleet.nodes, replicaOf);
  await promote(replica);
  await expect.poll(() => attempted(worker, 1, run_id), { timeout: 120_000 }).toBe('committed');

  // The owner of the slot dies; its replica takes over.
  await replica.kill();
  await expect.poll(() => attempted(worker, 2, run_id), { timeout: 60_000 }).toBe('committed');
  const { results } = await worker.results.read(run_id, '0');
  expect(results.map(({ result }) => result.rollout_index)).toEqual([0, 1, 2]);

  const one = testConfig({ redis_url: fleet.url.replace('+cluster', '').replace(/,.*/, '') });
  await refused(openFarm(one, 'producer'), 'redis_kind', /redis\+cluster:\/\//);
  const wrong = testConfig({ redis_url: fleet.url.replace(/:[^:@/]+@/, ':wrong@') });
  await refused(openFarm(wrong, 'producer'), 'redis_auth');
});

/** Asks a replica until it is the master, because a replica that is not in sync refuses. */
async function promote(replica: Nodes[number]): Promise<void> {
  const until = performance.now() + 60_000;
  while (!(await replica.command('ROLE')).startsWith('master')) {
    if (performance.now() > until)
      throw new Error(`no master after a minute: ${await replica.command('ROLE')}`);
    await replica.command('CLUSTER', 'FAILOVER').catch(() => '');
    for (let look = 0; look < 60 && !(await replica.command('ROLE')).startsWith('master'); look++)
      await sleep(100);
  }
}

/** Commits a result; returns `repeat` if the commit fails because the slot moves. */
async function attempted(farm: Farm, index: number, runId: string): Promise<string> {
  try {
    return (await farm.commit(testRun({ run_id: runId }), testResult(runId, index))).status;
  } catch (error) {
    expect(error).toMatchObject({ code: 'redis_unreachable' });
    return 'repeat';
  }
}

type Nodes = Awaited<ReturnType<typeof startCluster>>['nodes'];

async function nodeOf(nodes: Nodes, address: string): Promise<string> {
  const table = (await nodes[0]?.command('CLUSTER', 'NODES')) ?? '';
  return (
    table
      .split('\n')
      .find((line) => line.includes(address))
      ?.split(' ')[0] ?? ''
  );
}

async function findReplica(nodes: Nodes, masterId: string): Promise<Nodes[number]> {
  // Nodes learn of replicas with a delay.
  await expect
    .poll(() => nodes[0]?.command('CLUSTER', 'NODES'), { timeout: 60_000 })
    .toContain(`slave ${masterId}`);
  const table = (await nodes[0]?.command('CLUSTER', 'NODES')) ?? '';
  const line = table.split('\n').find((one) => one.includes(`slave ${masterId}`)) ?? '';
  const node = nodes.find(({ port }) => line.includes(`:${port}@`));
  if (!node) throw new Error(`no replica of ${masterId} in\n${table}`);
  return node;
}

test('a client certificate is sent; an incomplete one, or one without TLS, is refused by name', async () => {
  const dir = temporaryFolder('mutual');
  const { ca, cert, key } = await makeCertificates(dir);
  const port = await freePort();
  await using redis = await startRedis({
    settings: [
      ...[`tls-port ${port}`, `tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${ca}`],
      'tls-auth-clients yes',
    ],
  });
  const redis_url = redis.url.replace(/^redis:(.*)@.*$/, `rediss:$1@localhost:${port}`);
  const files = { redis_tls_ca: ca, redis_tls_cert: cert, redis_tls_key: key };
  await using farm = await openFarm(testConfig({ redis_url, ...files }), 'worker');
  await committed(farm, 0, testRun().run_id);

  const open = (flags: Record<string, unknown>): Promise<Farm> => openFarm(testConfig(flags), 'producer');
  await expect(open({ redis_url, redis_tls_ca: ca })).rejects.toMatchObject({
    code: expect.stringMatching(/^redis_(tls|unreachable)$/),
  });
  await expect(open({ redis_url, redis_tls_ca: ca, redis_tls_cert: cert })).rejects.toThrow(
    'redis_tls_cert is set and redis_tls_key is not',
  );
  await expect(open({ redis_url: redis.url, ...files })).rejects.toThrow(/has no TLS: use rediss:\/\//);
});

test.each([
  ['an eviction policy', ['maxmemory-policy volatile-lru'], /volatile-lru: .* set it to noeviction/],
  ['no append-only file', ['appendonly no'], /no append-only file: .* set appendonly yes/],
])('%s: no work is entrusted to such a server unless a setting says so', async (_, settings, reason) => {
  await using redis = await startRedis({ settings });
  const config = testConfig({ redis_url: redis.url });
  for (const [role, options] of [
    ['worker', {}],
    ['producer', { entrusts: true }],
  ] as const) {
    await refused(openFarm(config, role, options), 'redis_unsafe', reason);
  }
  // Read-only use is allowed, with a warning.
  await using looking = await openFarm(config, 'producer');
  expect(looking.hazards).toEqual([expect.stringMatching(reason)]);
  await using accepted = await openFarm({ ...config, redis_durability: 'best_effort' }, 'worker');
  expect(accepted.warnings).toEqual([expect.stringMatching(reason)]);
});
