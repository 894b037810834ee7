/** What a farm may have left on this machine after its work: each list must be empty. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Names of containers, running or not, that carry a worker's mark. */
export async function containersOf(workers: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const worker of workers) {
    const { stdout } = await run('docker', ['ps', '-aq', '--filter', `label=swefarm.worker=${worker}`]);
    found.push(...stdout.split('\n').filter(Boolean));
  }
  return found;
}

/** Entries of the scratch folder of stopped workers. */
export async function scratchOf(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => !name.startsWith('.'));
}

/** Processes whose environment or command line mentions the scratch folder. */
export async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await run('ps', ['-eo', 'pid,args'], { maxBuffer: 64 * 1024 ** 2 });
  const lines = stdout.split('\n').filter((line) => line.includes(folder));
  return lines.map((line) => line.slice(0, 200));
}

/** The farm's own few keys, one each however many runs there were; the index of runs and artifacts sheds what has lapsed. */
const OWN =
  /:(farm-id|runs|unfinished|drained|workers|cancel-epoch|totals:\w+|artifacts:(bytes|expiry|used)|rollouts:(events|id|meta|marker|stalled-check))$/;

/** Keys that would stay for ever: no life time, and not the farm's own. */
export async function endlessKeys(redisUrl: string): Promise<string[]> {
  const { port, password } = new URL(redisUrl);
  const env = { ...process.env, REDISCLI_AUTH: password };
  const cli = async (...args: string[]): Promise<string> =>
    (await run('redis-cli', ['-p', port, ...args], { env })).stdout;
  const keys = (await cli('--scan')).split('\n').filter(Boolean);
  const endless: string[] = [];
  for (const key of keys) {
    if (!OWN.test(key) && (await cli('TTL', key)).trim() === '-1') endless.push(key);
  }
  return endless.sort();
}
