/**
 * Elects a leader on a shared file system, which may not support locks. The leader creates a file with the next number and rewrites the
 * file regularly. A leader that finds a file with a higher number has lost the lead. Clocks of different hosts are never compared.
 */
import { readlinkSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  bootId,
  errorMessage,
  processStarted,
  replaceFile,
  sleep,
  UnusableError,
  waitAtMost,
} from '@swefarm/shared';
import { z } from 'zod';

const Lead = z.object({
  epoch: z.number().int(),
  node: z.string(),
  job: z.string().nullable(),
  pid: z.number().int(),
  /** Start time, boot id and pid namespace of the process, by which a process on the same host checks whether the leader exists. */
  process: z.string(),
  beat: z.number().int(),
  released: z.boolean(),
});
type Lead = z.infer<typeof Lead>;

export type LockOptions = {
  dir: string;
  node: string;
  job: string | null;
  /** Whether to wait for the end of a living leader, instead of throwing. */
  standby: boolean;
  /** Time in ms without a renewal after which the lead is lost; only tests set this option. */
  staleMs?: number;
  /** Called once, before waiting for a living leader. */
  onWait?: (leader: string) => void;
  signal: AbortSignal;
};

export type Lock = {
  readonly epoch: number;
  /** Renews the lead. Throws UnusableError `redis_fenced` when another process leads, or the folder does not respond. */
  beat(): Promise<void>;
  /** Gives up the lead, so that the next leader does not wait for a timeout. */
  release(): Promise<void>;
};

const STALE_MS = 15_000;
const POLL_MS = 500;
const MOST_FILES = 3;

/** Takes the lead. Throws UnusableError `redis_led` if another process leads (unless `standby`), `redis_dir` if the folder is unusable. */
export async function takeLead(options: LockOptions): Promise<Lock> {
  const staleMs = options.staleMs ?? STALE_MS;
  const folder = join(options.dir, 'lead');
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UnusableError(
      'redis_dir',
      `${options.dir} cannot be used (${errorMessage(error)}): give a folder that all nodes can write, on the shared file system`,
      { cause: error },
    );
  }
  for (let isWaiting = false; ; ) {
    const highest = (await epochsIn(folder)).at(-1) ?? 0;
    const leader = await livingLeader(folder, highest, staleMs, options.signal);
    if (leader === null) {
      const lock = await claim(folder, highest + 1, options, staleMs);
      if (lock) return lock;
      continue;
    }
    const who = `${leader.node}${leader.job ? `, job ${leader.job}` : ''}`;
    if (!options.standby) {
      throw new UnusableError(
        'redis_led',
        `${who} leads this farm already: join it with redis_url file:${join(options.dir, 'address.json')}, or wait for its end with --standby`,
      );
    }
    if (!isWaiting) options.onWait?.(who);
    isWaiting = true;
  }
}

/** Returns the living leader; null: none. Waits up to `staleMs` for a renewal of the lead. */
async function livingLeader(
  folder: string,
  epoch: number,
  staleMs: number,
  signal: AbortSignal,
): Promise<Lead | null> {
  if (epoch === 0) return null;
  const first = await readLead(folder, epoch);
  const until = performance.now() + staleMs;
  for (let lead = first; performance.now() < until; lead = await readLead(folder, epoch)) {
    if (lead?.released || (lead && isGone(lead))) return null;
    if (lead && lead.beat !== first?.beat) return lead;
    await sleep(POLL_MS, signal);
  }
  return null;
}

/** Creates the file of an epoch. Returns null when another process created the file first. */
async function claim(
  folder: string,
  epoch: number,
  options: LockOptions,
  staleMs: number,
): Promise<Lock | null> {
  const { node, job } = options;
  const { pid } = process;
  const lead: Lead = { epoch, node, job, pid, process: processName(pid), beat: 0, released: false };
  try {
    await writeFile(fileOf(folder, epoch), JSON.stringify(lead), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  }
  for (const old of (await epochsIn(folder)).slice(0, -MOST_FILES))
    await rm(fileOf(folder, old), { force: true });
  const fenced = (why: string): UnusableError =>
    new UnusableError('redis_fenced', `this Redis lost the lead (epoch ${epoch}): ${why}`);
  const write = async (changes: Partial<Lead>): Promise<void> => {
    Object.assign(lead, changes, { beat: lead.beat + 1 });
    await replaceFile(fileOf(folder, epoch), JSON.stringify(lead), { mode: 0o600 });
    // A successor may delete this file, so only the numbers of the existing files show who leads.
    const highest = (await epochsIn(folder)).at(-1) ?? epoch;
    if (highest > epoch) throw fenced(`epoch ${highest} was taken`);
  };
  return {
    epoch,
    async beat() {
      // Another process may take the lead after `staleMs`, so the write must end before.
      const { by } = await waitAtMost(write({}), staleMs / 2);
      if (by !== 'itself') throw fenced(`${folder} does not answer`);
    },
    release: () => write({ released: true }),
  };
}

const fileOf = (folder: string, epoch: number): string => join(folder, `epoch-${epoch}.json`);

async function epochsIn(folder: string): Promise<number[]> {
  const numbers = (await readdir(folder)).flatMap((name) => /^epoch-(\d+)\.json$/.exec(name)?.[1] ?? []);
  return numbers.map(Number).sort((a, b) => a - b);
}

async function readLead(folder: string, epoch: number): Promise<Lead | null> {
  try {
    return Lead.parse(JSON.parse(await readFile(fileOf(folder, epoch), 'utf8')));
  } catch {
    // The file is incomplete or was removed.
    return null;
  }
}

/** Returns whether the leader ran in this boot and pid namespace, and its process no longer exists. */
function isGone(lead: Lead): boolean {
  const [, boot, namespace] = lead.process.split(' ');
  const [, ownBoot, ownNamespace] = processName(process.pid).split(' ');
  return boot === ownBoot && namespace === ownNamespace && processName(lead.pid) !== lead.process;
}

const processName = (pid: number): string =>
  `${processStarted(pid) ?? 'gone'} ${bootId()} ${readlinkSync('/proc/self/ns/pid')}`;
