/** `swefarm redis`: runs a Redis for the farm on this host, which others find through a file on the shared file system. */
import { lookup } from 'node:dns/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { type Command, Option } from 'commander';
import { lead } from '../redis/lead.ts';
import { addFarmOptions, type Flags, producerConfig, wholeNumber } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, say } from './terminal.ts';

export function addRedis(program: Command): void {
  const command = program
    .command('redis')
    .requiredOption(
      '--dir <folder>',
      'folder on the shared file system, for lock, copies, password and address.json',
    )
    .option(
      '--local-dir <folder>',
      'folder for the data, on a local disk; removed at the end (default: in the temporary folder)',
    )
    .option('--host <address>', 'address under which the other nodes reach this one (default: host name)')
    .addOption(new Option('--port <n>', 'port; 0: any free one').argParser(wholeNumber).default(0))
    .addOption(
      new Option('--copy-every <seconds>', 'time between two copies').argParser(wholeNumber).default(30),
    )
    .option('--redis-server <program>', 'redis-server or valkey-server (default: found on PATH)')
    .option('--standby', 'wait while another node leads, and take over when that one ends or dies')
    .option('--job <name>', 'name of the job, shown to people who ask who leads')
    .option('--until-stdin-ends', 'stop when standard input ends, not at SIGTERM: for batch schedulers')
    .option('--node <name>', 'name of this node (default: host name)');
  addFarmOptions(command).action(runRedis);
}

async function runRedis(flags: Flags): Promise<void> {
  const config = producerConfig(flags);
  const name = String(flags.node ?? hostname());
  const localDir = flags.localDir ?? join(tmpdir(), `swefarm-redis-${userInfo().uid}-${name}`);
  await lead({
    dir: resolve(String(flags.dir)),
    localDir: resolve(String(localDir)),
    host: await addressOf(String(flags.host ?? hostname())),
    port: flags.port as number,
    prefix: config.redis_prefix,
    node: name,
    job: (flags.job as string | undefined) ?? null,
    standby: flags.standby === true,
    copySeconds: flags.copyEvery as number,
    binary: (flags.redisServer as string | undefined) ?? null,
    binDir: join(config.state_dir, 'bin'),
    onReady: (ready) => void print(JSON.stringify(ready)),
    note: (text) => say(`swefarm redis: ${text}`),
    signal: flags.untilStdinEnds === true ? untilStdinEnds() : listenForStop().draining,
  });
}

/** Resolves the host to an address: Redis listens on addresses, and other nodes may know the host by another name. */
async function addressOf(host: string): Promise<string> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    throw new UsageError(`${host} has no address here: give --host with the one that other nodes reach`, {
      cause: error,
    });
  }
}

function untilStdinEnds(): AbortSignal {
  const ended = new AbortController();
  process.on('SIGTERM', () => say('swefarm redis: staying until standard input ends'));
  process.stdin.once('end', () => ended.abort());
  process.stdin.once('error', () => ended.abort());
  process.stdin.resume();
  return ended.signal;
}
