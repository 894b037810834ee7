/** Runs the farm's own Redis on one host, the leader. The data are on a local disk; copies are on the shared file system. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  aclUser,
  errorMessage,
  type LaunchedRedis,
  type LaunchOptions,
  launchRedis,
  newestCopy,
  type OwnFolder,
  ownFolder,
  removeAddress,
  restoreCopy,
  saveCopy,
  sleepAtMost,
  UnusableError,
  writeAddress,
} from '@swefarm/shared';
import { type Lock, type LockOptions, takeLead } from './lock.ts';

/** `dir`: folder on the shared file system for lock, copies and address. */
export type LeadOptions = Omit<LockOptions, 'onWait'> & {
  /** Folder on a local disk for the data; removed at the end if the last state was copied. */
  localDir: string;
  /** Address at which other nodes reach this node. */
  host: string;
  /** Port of Redis; 0: any free port. */
  port: number;
  prefix: string;
  copySeconds: number;
  binDir: string;
  onReady: (lead: { epoch: number; host: string; port: number; address: string; restored: boolean }) => void;
  note: (text: string) => void;
};

const BEAT_MS = 2_000;
const CHECK_MS = 250;
const USER = 'farm';
const LOCAL: OwnFolder = { setting: '--local-dir', closed: true };

/** Leads until `signal` aborts. Throws the errors of takeLead, launchRedis and choosePort, and `redis_fenced` after losing the lead. */
export async function lead(options: LeadOptions): Promise<void> {
  const { localDir, note } = options;
  const lock = await takeLead({ ...options, onWait: (who) => note(`${who} leads; waiting until it ends`) });
  const pulse = startPulse(lock);
  let isCopied = false;
  try {
    isCopied = await serve(options, lock, pulse.lost);
  } catch (error) {
    // After the loss of the lead, only the data of the next leader are valid, so the local data can be removed.
    isCopied = error instanceof UnusableError && error.code === 'redis_fenced';
    throw error;
  } finally {
    await pulse[Symbol.asyncDispose]();
    await lock.release().catch((error: unknown) => note(errorMessage(error)));
    if (isCopied) await rm(localDir, { recursive: true, force: true });
    else if (existsSync(localDir))
      note(`the newest data are in ${localDir} on ${options.node} only: the next leader there uses them`);
  }
}

/** Runs Redis until `signal` aborts. Returns whether the last state was copied. Throws the reason of `lost` after the lead is lost. */
async function serve(options: LeadOptions, lock: Lock, lost: AbortSignal): Promise<boolean> {
  const { dir, localDir, host, node, job, note, signal } = options;
  const copies = join(dir, 'copies');
  const port = await choosePort(host, options.port);
  const restored = await prepareData(localDir, copies, lock.epoch);
  const password = await passwordOf(dir);
  const launch: LaunchOptions = {
    dir: localDir,
    dirSetting: LOCAL.setting,
    binDir: options.binDir,
    host,
    port,
    settings: [aclUser(USER, `>${password}`, 'farm', options.prefix)],
  };
  const address = join(dir, 'address.json');
  let server = await launchRedis(launch);
  try {
    lost.throwIfAborted();
    const location = { host, port, node, job, epoch: lock.epoch };
    await writeAddress(address, { format: 'swefarm-redis-1', username: USER, password, ...location });
    options.onReady({ epoch: lock.epoch, host, port, address, restored });
    const copier = createCopier(() => server, localDir, copies, lock, options);
    while (!signal.aborted) {
      await sleepAtMost(CHECK_MS, signal);
      lost.throwIfAborted();
      if (!server.alive()) {
        // A batch scheduler or the system may have killed Redis, whose data are on disk.
        if (!signal.aborted) note('Redis ended; starting it again from its append-only file');
        server = await launchRedis(launch);
      }
      copier.copyWhenDue();
    }
    const isCopied = await copier.copyLast();
    lost.throwIfAborted();
    await server.stop();
    await removeAddress(address, lock.epoch);
    return isCopied;
  } finally {
    // After an error too, this Redis must stop serving clients.
    await server.kill();
  }
}

/** Renews the lead in the background. `lost` aborts with the error after the lead is lost. */
function startPulse(lock: Lock): AsyncDisposable & { lost: AbortSignal } {
  const over = new AbortController();
  const lost = new AbortController();
  const beating = (async () => {
    while (!over.signal.aborted && !lost.signal.aborted) {
      await lock.beat().catch((error: unknown) => lost.abort(error));
      await sleepAtMost(BEAT_MS, over.signal);
    }
  })();
  return {
    lost: lost.signal,
    async [Symbol.asyncDispose]() {
      over.abort();
      await beating;
    },
  };
}

/** Uses the local data if this host led in the previous epoch, else restores the newest copy. Returns whether data existed. */
async function prepareData(localDir: string, copies: string, epoch: number): Promise<boolean> {
  await ownFolder(localDir, LOCAL);
  const mark = join(localDir, 'epoch');
  const own = await readFile(mark, 'utf8').catch(() => '');
  const isNewest = Number(own) === epoch - 1 && own !== '';
  let restored = isNewest;
  if (!isNewest) {
    await rm(localDir, { recursive: true, force: true });
    await ownFolder(localDir, LOCAL);
    const copy = await newestCopy(copies);
    if (copy !== null) await restoreCopy(copy, localDir);
    restored = copy !== null;
  }
  await writeFile(mark, String(epoch));
  return restored;
}

/** The password is generated once for the farm, so that clients can use it with every leader. */
async function passwordOf(dir: string): Promise<string> {
  const file = join(dir, 'password');
  await writeFile(file, randomBytes(24).toString('hex'), { flag: 'wx', mode: 0o600 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  return (await readFile(file, 'utf8')).trim();
}

/** Returns `port`, or any free port for 0. Throws UnusableError `port_taken`, or `redis_host` for an unusable address. */
async function choosePort(host: string, port: number): Promise<number> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    const bound = server.address();
    return typeof bound === 'object' && bound ? bound.port : port;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new UnusableError(
      code === 'EADDRINUSE' ? 'port_taken' : 'redis_host',
      code === 'EADDRINUSE'
        ? `port ${port} on ${host} is taken: give another --port, or 0 for a free one`
        : `${host} is no address of this host (${errorMessage(error)}): give --host`,
      { cause: error },
    );
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** Copies the data in the background, so that a slow disk does not delay the checks of the lead. */
function createCopier(
  server: () => LaunchedRedis,
  dir: string,
  copies: string,
  lock: Lock,
  { copySeconds, note }: LeadOptions,
) {
  let number = 0;
  let running: Promise<boolean> | null = null;
  let nextAt = performance.now() + copySeconds * 1000;
  const copy = async (last: boolean): Promise<boolean> => {
    try {
      await saveCopy(server(), { dir, copies, epoch: lock.epoch, number: ++number, last });
      return true;
    } catch (error) {
      note(errorMessage(error));
      return false;
    } finally {
      nextAt = performance.now() + copySeconds * 1000;
      running = null;
    }
  };
  return {
    copyWhenDue(): void {
      if (running === null && performance.now() >= nextAt) running = copy(false);
    },
    async copyLast(): Promise<boolean> {
      await running;
      return server().alive() && (await copy(true));
    },
  };
}
