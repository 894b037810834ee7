/** Lists what a farm left on this machine and in Redis. Each list must be empty. */
import { readdir } from 'node:fs/promises';
import { run } from '../../src/launchers/run.ts';

/** Returns the ids of containers, running or not, with the label of one of the workers. */
export async function containersOf(workers: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const worker of workers) {
    const { stdout } = await run('docker', ['ps', '-aq', '--filter', `label=swefarm.worker=${worker}`]);
    found.push(...stdout.split('\n').filter(Boolean));
  }
  return found;
}

/** Returns the entries of the scratch folder of stopped workers. */
export async function scratchOf(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => !name.startsWith('.'));
}

/** Returns the processes whose command line has the path of the folder. */
export async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await run('ps', ['-eo', 'pid,args'], { maxBuffer: 64 * 1024 ** 2 });
  const lines = stdout.split('\n').filter((line) => line.includes(folder));
  return lines.map((line) => line.slice(0, 200));
}

/** The farm's own keys, whose number does not depend on the number of runs. Expired entries are removed from the indexes among them. */
const OWN =
  /:(farm-id|runs|unfinished|drained|workers|cancel-epoch|totals:\w+|artifacts:(bytes|expiry|used)|rollouts:(events|id|meta|marker|stalled-check))$/;

/** Returns the keys without an expiry, except the farm's own keys. */
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
