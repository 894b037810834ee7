/** `swefarm redis`: runs a Redis for the farm on this host, and writes the address of Redis to the shared file system. */
import { lookup } from 'node:dns/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { lead } from '../redis/lead.ts';
import { command, defaulted, flag, required, text, whole } from './declare.ts';
import { FARM, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus } from './terminal.ts';

/** Seconds between two copies of the data to the shared file system. */
const COPY_SECONDS = 30;

export const redis = command({
  options: {
    '--dir <folder>': required(
      text('folder on the shared file system, for lock, copies, password and address.json'),
    ),
    '--local-dir <folder>': text(
      'folder for the data, on a local disk; removed at the end (default: in the temporary folder)',
    ),
    '--host <address>': text('address under which the other nodes reach this one (default: host name)'),
    '--port <n>': defaulted(whole('port; 0: any free one'), 0),
    '--standby': flag('wait while another node leads, and lead after its end'),
    '--job <name>': text('name of the job, shown with the leader'),
    '--until-stdin-ends': flag('stop when standard input ends, not at SIGTERM: for batch schedulers'),
    '--node <name>': text('name of this node (default: host name)'),
    ...FARM,
  },
  example: 'swefarm redis --dir /shared/farm --standby',
  async run(o) {
    const config = producerConfig(o);
    const { node = hostname(), host = hostname(), standby, port } = o;
    await lead({
      ...{ port, node, standby },
      dir: resolve(o.dir),
      localDir: resolve(o.localDir ?? join(tmpdir(), `swefarm-redis-${userInfo().uid}-${node}`)),
      host: await addressOf(host),
      prefix: config.redis_prefix,
      job: o.job ?? null,
      copySeconds: COPY_SECONDS,
      binDir: join(config.state_dir, 'bin'),
      onReady: (ready) => void print(JSON.stringify(ready)),
      note: (note) => printStatus(`swefarm redis: ${note}`),
      signal: o.untilStdinEnds ? untilStdinEnds() : listenForStop().draining,
    });
  },
});

/** Resolves the host to an address: Redis listens on addresses, and other nodes may use another name of the host. */
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
  process.on('SIGTERM', () => printStatus('swefarm redis: SIGTERM ignored until standard input ends'));
  process.stdin.once('end', () => ended.abort());
  process.stdin.once('error', () => ended.abort());
  process.stdin.resume();
  return ended.signal;
}
