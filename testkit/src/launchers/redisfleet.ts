/** Several Redis servers as in production: a master with replicas under Sentinels, or a cluster. Uses Debian's package. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@swefarm/shared';
import { until } from '../until.ts';
import { startRedisServer } from './redisserver.ts';
import { run } from './run.ts';

export interface RedisNode extends AsyncDisposable {
  readonly port: number;
  /** Runs a command in redis-cli's syntax and returns its answer as text. Throws when the server refuses it. */
  command(...words: string[]): Promise<string>;
  kill(): Promise<void>;
}

export interface RedisFleet extends AsyncDisposable {
  /** In the form of redis_url, with the password. */
  readonly url: string;
  readonly nodes: readonly RedisNode[];
  /** Ports of the Sentinels, or of the cluster's nodes. */
  readonly ports: readonly number[];
}

const PASSWORD = 'of-the-fleet';
const FAST_MS = 1_000;

/** A master, one replica and three Sentinels that know it as `farm`, with a password of their own. */
export async function startSentinels(options: { sentinelPassword: string }): Promise<RedisFleet> {
  await using stack = new AsyncDisposableStack();
  const dir = await folder(stack);
  const login = [`requirepass ${PASSWORD}`, `masterauth ${PASSWORD}`, 'appendonly yes'];
  const master = stack.use(await startNode(dir, 'master', login));
  const replica = stack.use(
    await startNode(dir, 'replica', [...login, `replicaof 127.0.0.1 ${master.port}`]),
  );
  const isInStep = async () =>
    (await replica.command('INFO', 'replication')).includes('master_link_status:up');
  await until(isInStep, { what: 'the replica is in step' });
  const watched = [
    `sentinel monitor farm 127.0.0.1 ${master.port} 2`,
    `sentinel auth-pass farm ${PASSWORD}`,
    `sentinel down-after-milliseconds farm ${FAST_MS}`,
    'sentinel failover-timeout farm 5000',
    `sentinel sentinel-pass ${options.sentinelPassword}`,
    `requirepass ${options.sentinelPassword}`,
  ];
  const sentinels: RedisNode[] = [];
  for (const name of ['one', 'two', 'three']) {
    const node = await startNode(dir, `sentinel-${name}`, watched, {
      ...{ sentinel: true, password: options.sentinelPassword },
    });
    sentinels.push(stack.use(node));
  }
  for (const sentinel of sentinels) {
    const knowsOthers = async () => {
      const known = await sentinel.command('SENTINEL', 'MASTER', 'farm');
      return /num-other-sentinels\n2\n/.test(known) && /num-slaves\n1\n/.test(known);
    };
    await until(knowsOthers, { what: 'the Sentinels know one another' });
  }
  const ports = sentinels.map(({ port }) => port);
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',');
  const all = stack.move();
  return {
    url: `redis+sentinel://:${PASSWORD}@${hosts}/farm`,
    nodes: [master, replica],
    ports,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Three masters with one replica each. */
export async function startCluster(): Promise<RedisFleet> {
  await using stack = new AsyncDisposableStack();
  const dir = await folder(stack);
  const settings = ['cluster-enabled yes', 'cluster-node-timeout 2000', 'appendonly yes'];
  const login = [`requirepass ${PASSWORD}`, `masterauth ${PASSWORD}`];
  const nodes: RedisNode[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
    // By default the port of a node's bus is its own plus 10,000, which may be out of range or taken.
    const bus = [`cluster-port ${await freePort()}`];
    nodes.push(stack.use(await startNode(dir, name, [...settings, ...login, ...bus])));
  }
  const ports = nodes.map(({ port }) => port);
  const hosts = ports.map((port) => `127.0.0.1:${port}`);
  await run('redis-cli', [
    ...['--no-auth-warning', '-a', PASSWORD, '--cluster', 'create', ...hosts],
    ...['--cluster-replicas', '1', '--cluster-yes'],
  ]);
  for (const node of nodes) {
    const isUp = async () => (await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok');
    await until(isUp, { what: 'the cluster is up' });
  }
  const all = stack.move();
  return {
    url: `redis+cluster://:${PASSWORD}@${hosts.join(',')}`,
    nodes,
    ports,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

type NodeOptions = { sentinel?: true; password?: string };

async function startNode(
  dir: string,
  name: string,
  settings: readonly string[],
  { sentinel, password = PASSWORD }: NodeOptions = {},
): Promise<RedisNode> {
  const port = await freePort();
  const own = join(dir, name);
  await mkdir(own);
  const lines = ['bind 127.0.0.1', `port ${port}`, `dir "${own}"`, ...settings];
  const end = await startRedisServer(own, name, port, lines, sentinel ? ['--sentinel'] : []);
  const login = ['--no-auth-warning', '-a', password, '-p', String(port)];
  return {
    port,
    command: async (...words) => (await run('redis-cli', [...login, '-e', ...words])).stdout,
    kill: end,
    [Symbol.asyncDispose]: end,
  };
}

async function folder(stack: AsyncDisposableStack): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'swefarm-fleet-'));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  return dir;
}
