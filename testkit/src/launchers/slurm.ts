/** A real SLURM of several nodes on this machine, for one test: see testkit/ci/slurm.sh. Jobs run as a plain user. */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { UnusableError } from '@swefarm/shared';
import { run } from './run.ts';

const SCRIPT = resolve(import.meta.dirname, '../../ci/slurm.sh');
const PATH = '/usr/bin:/bin:/usr/sbin:/sbin';
/** Debian's user `nobody`, which has no root rights, no home and no files. */
export const SLURM_USER = { uid: 65_534, gid: 65_534 } as const;

export type SlurmJob = { id: string; state: string; nodes: string };

export interface SlurmCluster extends AsyncDisposable {
  readonly conf: string;
  /** Runs one of SLURM's commands as the plain user, in an empty environment; returns its standard output. */
  asUser(command: string, args: readonly string[], cwd?: string): Promise<string>;
  /** Jobs of the plain user that wait or run. */
  jobs(): Promise<SlurmJob[]>;
  /** Kills the node's daemon with SIGKILL; its steps continue. */
  killDaemon(node: string): Promise<void>;
  startDaemon(node: string): Promise<void>;
}

/** Nodes are n1, n2, …, each with 2 CPUs and 6000 MiB. Throws UnusableError `slurm` with the end of its log. */
export async function startSlurm(dir: string, nodes: number): Promise<SlurmCluster> {
  await mkdir(dir, { recursive: true });
  const script = (action: string, ...args: string[]) => run('bash', [SCRIPT, action, dir, ...args]);
  try {
    await script('start', String(nodes));
  } catch (error) {
    await script('stop').catch(() => undefined);
    const { stderr } = error as { stderr?: string };
    throw new UnusableError('slurm', `no SLURM: ${stderr?.trim() || error}`, { cause: error });
  }
  const conf = join(dir, 'slurm.conf');
  const asUser = async (command: string, args: readonly string[], cwd = '/'): Promise<string> => {
    const env = { PATH, SLURM_CONF: conf, HOME: cwd };
    return (await run(command, args, { env, cwd, ...SLURM_USER })).stdout.trim();
  };
  return {
    conf,
    asUser,
    async jobs() {
      const text = await asUser('squeue', ['--noheader', '--format=%i %T %N']);
      return text.split('\n').flatMap((line) => {
        const [id, state, where = ''] = line.trim().split(/\s+/);
        return id && state ? [{ id, state, nodes: where }] : [];
      });
    },
    async killDaemon(node) {
      await script('kill', node);
    },
    async startDaemon(node) {
      await script('resume', node);
    },
    async [Symbol.asyncDispose]() {
      await script('stop');
    },
  };
}
