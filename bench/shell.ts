/**
 * The cost of a command: through our shell, as one exec each, and as a subshell of a bare bash in the same container.
 * The three alternate command by command, so that other load on the machine affects them alike.
 */
import type { RuntimeName } from '@swefarm/shared';
import { type Container, openShell, type Shell } from '@swefarm/worker';
import { openBareShell } from './bareshell.ts';
import { COMMANDS } from './commands.ts';
import { engine, execOnce, openBash } from './engine.ts';
import { startAgentContainer, tryRuntime } from './sandbox.ts';
import { differences, median, percentile, rounded, sum } from './statistics.ts';
import type { Subject } from './subject.ts';

/** The duration of a slow activation of an environment. */
const SLOW_ACTIVATION = 'sleep 0.2';
const TIMEOUT_MS = 60_000;

export type ShellCase = { runtime: RuntimeName; activation: 'none' | '200 ms' };

export type ShellResult = ShellCase & {
  commands: number;
  reps: number;
  ms: Record<'ours' | 'exec' | 'bare', { p50: number; p95: number; samples: number[] }>;
  /** Median of (ours - bare), command by command. */
  over_bare_p50_ms: number;
  /** Ratio of the medians, and of the time of all commands together. */
  exec_over_ours_p50: number;
  exec_over_ours_total: number;
};

export type Skipped = { what: string; why: string };
export type ShellPart = { results: ShellResult[]; skipped: Skipped[] };

export async function measureShell(subject: Subject, reps: number): Promise<ShellPart> {
  const results: ShellResult[] = [];
  const skipped: Skipped[] = [];
  for (const name of ['docker', 'rootfs'] as const) {
    const opened = await tryRuntime(name);
    if (typeof opened === 'string') {
      skipped.push({ what: name, why: opened });
      continue;
    }
    await using owned = opened;
    for (const activation of ['none', '200 ms'] as const) {
      await using container = await startAgentContainer(owned.runtime, subject.image);
      results.push(await measureCase(container, { runtime: name, activation }, reps));
    }
  }
  return { results, skipped };
}

type Ways = Record<'ours' | 'exec' | 'bare', (command: string) => Promise<void>>;

async function measureCase(container: Container, which: ShellCase, reps: number): Promise<ShellResult> {
  const activate = which.activation === 'none' ? '' : SLOW_ACTIVATION;
  await using shell = await openShell(container, { workdir: container.workdir, activate, env: {} });
  const signal = AbortSignal.timeout(3_600_000);
  const stream =
    which.runtime === 'docker' ? null : await container.open(['bash', '--noprofile', '--norc'], signal);
  const bare = await openBareShell(
    stream ? { stdin: stream, output: stream } : await openBash(engine().getContainer(container.id)),
    activate || ':',
  );
  const ways: Ways = {
    ours: (command) => runOurs(shell, command, signal),
    exec: execWay(container, which.runtime, activate, signal),
    bare: async (command) => void (await bare.run(command)),
  };
  const samples: Record<keyof Ways, number[]> = { ours: [], exec: [], bare: [] };
  const order = Object.keys(ways) as (keyof Ways)[];
  // The first round fills caches and is not counted.
  for (let rep = -1; rep < reps; rep++) {
    for (const command of COMMANDS) {
      // The first variant finds cold file caches, so they take turns at going first.
      order.push(order.shift() as keyof Ways);
      for (const way of order) {
        const from = performance.now();
        await ways[way](command);
        if (rep >= 0) samples[way].push(performance.now() - from);
      }
    }
  }
  bare.close();
  return { ...which, commands: COMMANDS.length, reps, ...summary(samples) };
}

async function runOurs(shell: Shell, command: string, signal: AbortSignal): Promise<void> {
  const { note } = await shell.run(command, { timeoutMs: TIMEOUT_MS, maxOutputBytes: 20_000, signal });
  if (note) throw new Error(`"${command}" ended with ${note}`);
}

/** On Docker an exec by dockerode alone; on another runtime its own plain exec. */
function execWay(
  container: Container,
  runtime: RuntimeName,
  activate: string,
  signal: AbortSignal,
): (command: string) => Promise<void> {
  const argvOf = (command: string): string[] => [
    'bash',
    '-c',
    activate ? `${activate}; ${command}` : command,
  ];
  if (runtime === 'docker') {
    const raw = engine().getContainer(container.id);
    return async (command) => void (await execOnce(raw, argvOf(command)));
  }
  return async (command) =>
    void (await container.exec(argvOf(command), {
      cwd: '/testbed',
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: 20_000,
      signal,
    }));
}

function summary(
  samples: Record<keyof Ways, number[]>,
): Pick<ShellResult, 'ms' | 'over_bare_p50_ms' | 'exec_over_ours_p50' | 'exec_over_ours_total'> {
  const of = (list: number[]) => ({
    p50: rounded(median(list)),
    p95: rounded(percentile(list, 95)),
    samples: list.map((ms) => rounded(ms)),
  });
  const { ours, exec, bare } = samples;
  return {
    ms: { ours: of(ours), exec: of(exec), bare: of(bare) },
    over_bare_p50_ms: rounded(median(differences(ours, bare))),
    exec_over_ours_p50: rounded(median(exec) / median(ours), 1),
    exec_over_ours_total: rounded(sum(exec) / sum(ours), 1),
  };
}
