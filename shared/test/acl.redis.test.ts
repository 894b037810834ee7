/** Makes all calls of the farm as the Redis users of their roles, and checks which commands these users may not use. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCertificates, type SecuredRedis, startRedis, startSecuredRedis } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aclUser, type Farm, openFarm } from '../src/index.ts';
import { connectRedis, type FarmRole } from '../src/redis/connect.ts';
import { refused, testConfig } from './farm.ts';
import { aWorld, BOTH, CALLS, callsOf } from './farmcalls.ts';

const PREFIX = '{acl}';
const USERS = [
  'user default off',
  aclUser('worker', '>worker-password', 'worker', PREFIX),
  aclUser('producer', '>producer-password', 'producer', PREFIX),
];

let dir = '';
let redis: SecuredRedis;
let farms: Record<FarmRole, Farm>;
beforeAll(async () => {
  dir = temporaryFolder('acl');
  await writeFile(join(dir, 'users.acl'), `${USERS.join('\n')}\n`);
  redis = await startSecuredRedis({ aclFile: join(dir, 'users.acl') });
  farms = { worker: await open('worker'), producer: await open('producer') };
});
afterAll(async () => {
  for (const farm of Object.values(farms)) await farm[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

const configOf = (role: FarmRole, change: Record<string, unknown> = {}) =>
  testConfig({
    redis_url: redis.url,
    redis_username: role,
    redis_password: `${role}-password`,
    redis_prefix: PREFIX,
    ...change,
  });
const open = (role: FarmRole): Promise<Farm> => openFarm(configOf(role), role);

/** Functions that only return connections or a backend; end-to-end tests use these. */
const CONNECTIONS = ['queue', 'bullConnection', 'bullBackend'];

test('the list of calls is complete', () => {
  const functions = Object.entries(farms.worker).flatMap(([name, member]) => {
    if (typeof member === 'function') return [name];
    if (typeof member !== 'object' || Array.isArray(member)) return [];
    return Object.entries(member).flatMap(([part, value]) =>
      typeof value === 'function' ? [`${name}.${part}`] : [],
    );
  });
  expect(functions.filter((name) => !CONNECTIONS.includes(name)).sort()).toEqual(Object.keys(CALLS).sort());
});

describe.each(BOTH)('as %s', (role) => {
  test.each(Object.entries(callsOf(role)))('%s', async (_name, call) => {
    await call(farms[role], await aWorld(farms));
  });
});

test('a worker cannot write keys, policies, the list of runs or drains', async () => {
  const world = await aWorld(farms);
  for (const name of ['secrets.put', 'secrets.remove', 'policies.set', 'policies.remove', 'runs.list']) {
    const call = CALLS[name]?.(farms.worker, world);
    await expect(call, name).rejects.toThrow(/NOPERM|No permissions/);
  }
  await expect(farms.worker.nodes.drain('n')).rejects.toThrow(/NOPERM|No permissions/);
  expect((await farms.producer.secrets.get(world.id))?.secret.reveal()).toBe('a-key-of-a-policy');
  await expect(farms.producer.leases.acquire('keeper', 'p', 1000)).rejects.toThrow(/NOPERM|No permissions/);
});

const REFUSED = [
  ...['FLUSHALL', 'FLUSHDB', 'KEYS *', 'SCAN 0', 'RANDOMKEY', 'DBSIZE', 'CONFIG GET *'],
  ...['CONFIG SET dir /tmp', 'SCRIPT FLUSH', 'FUNCTION FLUSH', 'FUNCTION LIST', 'CLIENT KILL TYPE normal'],
  ...['CLIENT LIST', 'CLIENT PAUSE 1', 'ACL LIST', 'ACL SETUSER me on', 'MONITOR', 'SHUTDOWN NOSAVE', 'SAVE'],
  ...['BGSAVE', 'SWAPDB 0 1', 'REPLICAOF h 1', 'MODULE LIST', 'SLOWLOG GET', 'MIGRATE h 1 k 0 1'],
  ...['PUBLISH c m', 'SUBSCRIBE c'],
  ...['GET {other}:run:x', 'SET {other}:run:x 1', 'DEL {swefarm}:run:x', 'GET {acl}', 'GET {acl}:unknown'],
];

test.each(BOTH)('a stolen credential of a %s harms neither the server nor other farms', async (role) => {
  const { redis: raw } = await connectRedis(configOf(role), role);
  try {
    for (const line of REFUSED) {
      const [name = '', ...args] = line.split(' ');
      await expect(raw.call(name, ...args), line).rejects.toThrow(/NOPERM|No permissions/);
    }
    // A script has the permissions of its caller.
    for (const body of ["return redis.call('GET', '{other}:x')", "return redis.call('FLUSHALL')"]) {
      await expect(raw.eval(body, 0), body).rejects.toThrow(/permission|ACL failure|can.t access|can.t run/i);
    }
    if (role === 'worker') {
      const write = "return redis.call('SET', '{acl}:secret:a', '1')";
      await expect(raw.eval(write, 0)).rejects.toThrow(/permission|ACL failure|can.t access|can.t run/i);
      await expect(raw.call('COPY', '{acl}:run:a', '{acl}:secret:a')).rejects.toThrow(/NOPERM/);
    }
  } finally {
    raw.disconnect();
  }
});

test('a missing password and another prefix are refused at the start', async () => {
  const anonymous = testConfig({ redis_url: redis.url, redis_prefix: PREFIX });
  await expect(openFarm(anonymous, 'producer')).rejects.toMatchObject({ code: 'redis_auth' });
  const other = openFarm(configOf('worker', { redis_prefix: 'other' }), 'worker');
  await expect(other).rejects.toMatchObject({
    code: 'redis_auth',
    message: expect.not.stringContaining('\n'),
  });
});

test('TLS needs the right authority; a wrong protocol has an error of its own', async () => {
  const tls = await makeCertificates(dir);
  await using secured = await startSecuredRedis({ aclFile: join(dir, 'users.acl'), tls });
  const over = (url: string, ca: string | null, role: FarmRole = 'producer') =>
    openFarm(configOf(role, { redis_url: url, ...(ca === null ? {} : { redis_tls_ca: ca }) }), role);
  for (const role of BOTH) {
    await using farm = await over(secured.url, tls.ca, role);
    expect(await farm.queue().getJobCounts()).toMatchObject({ active: 0 });
  }
  await using plain = await startRedis();
  const wrong = join(dir, 'wrong');
  await mkdir(wrong);
  const { ca: foreign } = await makeCertificates(wrong);
  await refused(over(secured.url, foreign), 'redis_tls', /redis_tls_ca/);
  const toPlain = `rediss://localhost:${plain.port}`;
  await expect(over(toPlain, tls.ca)).rejects.toThrow(/redis:\/\/ for a server without TLS/);
  const toTls = secured.url.replace('rediss:', 'redis:');
  await expect(over(toTls, null)).rejects.toThrow(/rediss:\/\/ for a server with TLS/);
});
