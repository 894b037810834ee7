/** Starts a Redis that listens on the loopback address, with a password and an append-only file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { childEnvironment } from '../config/environment.ts';
import { SwefarmError, UnusableError } from '../failures/errors.ts';
import { ownFolder } from '../files/folder.ts';
import { dieWithParent } from '../processes/diewithparent.ts';
import { Secret } from '../security/secret.ts';
import { poll } from '../waiting/poll.ts';
import { sleep } from '../waiting/sleep.ts';
import { findRedisServer } from './server.ts';

export type LaunchOptions = {
  /** Folder of data, log and configuration (mode 0700); the folder remains when the server has stopped. */
  dir: string;
  /** Setting that names the folder, for error messages; default: state_dir. */
  dirSetting?: string;
  /** Folder for a downloaded server program. */
  binDir: string;
  /** Port of the server; default: a free port. */
  port?: number;
  /** Additional address on which the server listens. */
  host?: string;
  /** Password of the server; default: a new random password. */
  password?: string;
  /** Additional lines of redis.conf. */
  settings?: readonly string[];
  signal?: AbortSignal;
};

export type LaunchedRedis = ReturnType<typeof handle>;

/** Content of server.json, by which a launch finds a server whose owner was killed. `owner`: pid of the last launching process. */
type ServerMark = { pid: number; owner: number; port: number; password: string };

const START_MS = 30_000;
const STOP_MS = 10_000;

/**
 * Starts a server, or becomes the owner of a running server whose owner was killed. @throws SwefarmError `redis_dir_in_use` while another
 * process owns the server of the folder; UnusableError `redis_binary`, `redis_launch`; UsageError `folder_not_ours`
 */
export async function launchRedis(options: LaunchOptions): Promise<LaunchedRedis> {
  await ownFolder(options.dir, { setting: options.dirSetting ?? 'state_dir', closed: true });
  const mark = await readMark(options.dir);
  if (mark && (await answers(mark.port, mark.password))) {
    if (mark.owner !== process.pid && isAlive(mark.owner)) {
      throw new SwefarmError(
        'redis_dir_in_use',
        `process ${mark.owner} uses ${options.dir} (Redis on port ${mark.port}): wait for it, or use another state_dir`,
      );
    }
    await writeMark(options.dir, { ...mark, owner: process.pid });
    return handle(options.dir, mark, null);
  }
  return await start(options);
}

async function start(options: LaunchOptions): Promise<LaunchedRedis> {
  const binary = await findRedisServer(options.binDir, options.signal);
  const port = options.port ?? (await freePort());
  const password = options.password ?? randomBytes(24).toString('hex');
  const conf = join(options.dir, 'redis.conf');
  await writeFile(conf, configuration(options, port, password), { mode: 0o600 });
  await chmod(conf, 0o600);
  // The server is detached, so that Ctrl-C does not stop it before the producer.
  const [program = '', ...args] = dieWithParent([binary, conf]);
  const child = spawn(program, args, { env: childEnvironment(), stdio: 'ignore', detached: true });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`it ended with ${signal ?? code}`)));
  });
  failed.catch(() => undefined);
  try {
    await Promise.race([untilAnswers(port, password, options.signal), failed]);
  } catch (error) {
    child.kill('SIGKILL');
    options.signal?.throwIfAborted();
    const tail = await logTail(options.dir);
    const message = `${binary} did not start in ${options.dir}: ${(error as Error).message}${tail}`;
    throw new UnusableError('redis_launch', message, { cause: error });
  }
  child.unref();
  const mark = { pid: child.pid ?? 0, owner: process.pid, port, password };
  await writeMark(options.dir, mark);
  return handle(options.dir, mark, child);
}

function configuration(options: LaunchOptions, port: number, password: string): string {
  const lines = [
    `bind 127.0.0.1${options.host && options.host !== '127.0.0.1' ? ` ${options.host}` : ''}`,
    `port ${port}`,
    `requirepass ${password}`,
    `dir "${options.dir}"`,
    'logfile redis.log',
    'daemonize no',
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    ...(options.settings ?? []),
  ];
  return `${lines.join('\n')}\n`;
}

function handle(dir: string, mark: ServerMark, child: ChildProcess | null) {
  const alive = (): boolean =>
    child ? child.exitCode === null && child.signalCode === null : isAlive(mark.pid);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (alive()) process.kill(mark.pid, signal);
    const until = Date.now() + STOP_MS;
    while (alive()) {
      if (Date.now() > until) process.kill(mark.pid, 'SIGKILL');
      await sleep(20);
    }
    await rm(join(dir, 'server.json'), { force: true });
  };
  return {
    /** URL of the server, with the password. */
    url: new Secret(`redis://:${mark.password}@127.0.0.1:${mark.port}`, `redis://127.0.0.1:${mark.port}`),
    port: mark.port,
    pid: mark.pid,
    alive,
    /** Stops the server with SIGTERM, which saves the data; after 10 s with SIGKILL. */
    stop: () => end('SIGTERM'),
    /** Stops the server with SIGKILL, for tests. */
    kill: () => end('SIGKILL'),
    [Symbol.asyncDispose]: () => end('SIGTERM'),
  };
}

async function untilAnswers(port: number, password: string, signal?: AbortSignal): Promise<void> {
  const up = await poll(() => answers(port, password), { pauseMs: 20, withinMs: START_MS, signal });
  if (!up) throw new Error(`no answer within ${START_MS / 1000} s`);
}

export async function freePort(): Promise<number> {
  await using server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function readMark(dir: string): Promise<ServerMark | null> {
  try {
    return JSON.parse(await readFile(join(dir, 'server.json'), 'utf8')) as ServerMark;
  } catch {
    // If the file is missing or incomplete, there is no server to take over.
    return null;
  }
}

const writeMark = (dir: string, mark: ServerMark): Promise<void> =>
  writeFile(join(dir, 'server.json'), JSON.stringify(mark), { mode: 0o600 });

async function logTail(dir: string): Promise<string> {
  const text = await readFile(join(dir, 'redis.log'), 'utf8').catch(() => '');
  return text === '' ? '' : `; its log ends: ${text.trim().split('\n').slice(-3).join(' | ')}`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

const PING_MS = 1_000;

/** Returns whether a Redis on this port accepts the password and answers PING; false while Redis loads its data. */
async function answers(port: number, password: string): Promise<boolean> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  socket.setTimeout(PING_MS, () => socket.destroy());
  socket.write(`AUTH ${password}\r\nPING\r\n`);
  let reply = '';
  try {
    for await (const text of socket) {
      reply += text;
      if (/\+PONG|-/.test(reply)) break;
    }
  } catch {
    // The server refused, closed or did not answer in time.
  }
  return reply.includes('+PONG');
}
