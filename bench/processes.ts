/**
 * How many processes a rollout on rootfs starts, by program, beside those of its commands and tests: each process of the worker's
 * descendants is counted, wherever the kernel puts it afterwards, so other load on the machine changes nothing.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { planEvaluation } from '@swefarm/grading';
import { sleep, untilAborted } from '@swefarm/shared';
import { openBareShell } from './bareshell.ts';
import { COMMANDS } from './commands.ts';
import { openEnvironment, runBatch, startPolicy, startWorker } from './farm.ts';
import { table } from './print.ts';
import { SCRIPT } from './rollouts.ts';
import { rounded, sum } from './statistics.ts';
import type { Subject } from './subject.ts';

/** By the last program that each ran; `+fork`: a copy of that program which ran no other. */
type Programs = Record<string, number>;

export type ProcessesPart = {
  rollouts: number;
  /** Processes of one rollout. `own`: of the commands, and of the tests where it is graded, in a bare shell. */
  cells: { graded: boolean; all: number; own: number; beside: number; programs: Programs }[];
};

type Counter = AsyncDisposable & {
  /** What was started since the call before. Throws when the kernel could not tell all. */
  count(): Promise<Programs>;
};

/** What a rollout leaves is removed after its commit. */
const REMOVAL_MS = 1500;

/** Follows a living process. Throws where this user may not: it needs root and the first process namespace. */
async function openCounter(pid: number): Promise<Counter> {
  const counter = spawn('python3', [join(import.meta.dirname, 'processes.py'), String(pid)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new AbortController();
  counter.once('exit', () => ended.abort(new Error('processes cannot be counted here')));
  const lines = createInterface({ input: counter.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await untilAborted(lines.next(), ended.signal)).value);
  await next();
  return {
    async count() {
      counter.stdin.write('\n');
      const { programs, lost } = JSON.parse(await next()) as { programs: Programs; lost: boolean };
      if (lost) throw new Error('more processes were started than could be counted');
      return programs;
    },
    async [Symbol.asyncDispose]() {
      if (counter.exitCode !== null) return;
      const exited = once(counter, 'exit');
      counter.stdin.end();
      await exited;
    },
  };
}

export async function measureProcesses(subject: Subject, rollouts: number): Promise<ProcessesPart> {
  const own = await countOwn(subject);
  await using environment = await openEnvironment();
  await using policy = await startPolicy(environment, 'processes', SCRIPT, ['--tokens', 'off']);
  await using worker = await startWorker(environment, 'rootfs', 1);
  const batch = (count: number, graded: boolean) =>
    runBatch(worker, subject.instance, count, { policyUrl: [policy.url], activate: ':', eval: graded });
  // The image is prepared, and is known to be clean.
  await batch(1, true);
  await using counter = await openCounter(worker.pid);
  const cells: ProcessesPart['cells'] = [];
  for (const graded of [false, true]) {
    await counter.count();
    await batch(rollouts, graded);
    await sleep(REMOVAL_MS);
    const programs = Object.entries(await counter.count());
    const all = rounded(sum(programs.map(([, count]) => count)) / rollouts, 1);
    const ours = own.commands + (graded ? own.tests : 0);
    const each = programs
      .sort(([, a], [, b]) => b - a)
      .map(([name, count]) => [name, rounded(count / rollouts, 1)] as const);
    cells.push({
      graded,
      all,
      own: ours,
      beside: rounded(all - ours, 1),
      programs: Object.fromEntries(each.filter(([, count]) => count > 0)),
    });
  }
  return { rollouts, cells };
}

/** The commands and the tests alone, on the machine itself, in copies of the work tree. */
async function countOwn({ tree, instance }: Subject): Promise<{ commands: number; tests: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-'));
  try {
    const copy = async (name: string): Promise<string> => {
      const path = join(folder, name);
      await cp(join(tree, 'testbed'), path, { recursive: true, verbatimSymlinks: true });
      return path;
    };
    const commands = await countIn(await copy('commands'), COMMANDS);
    const tests = await copy('tests');
    const script = planEvaluation(instance).script.replaceAll('/testbed', tests);
    return { commands, tests: await countIn(tests, [script]) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function countIn(folder: string, commands: readonly string[]): Promise<number> {
  const bash = spawn('bash', ['--noprofile', '--norc'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    // As in the sandbox: a wrapper of a program would count too.
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: folder },
  });
  const exited = once(bash, 'exit');
  await using counter = await openCounter(bash.pid as number);
  const shell = await openBareShell({ stdin: bash.stdin, output: bash.stdout }, `cd '${folder}'`);
  await counter.count();
  for (const command of commands) await shell.run(command);
  const programs = await counter.count();
  shell.close();
  await exited;
  return sum(Object.values(programs));
}

export function printProcesses({ cells, rollouts }: ProcessesPart): string {
  const head = ['graded', 'beside', 'all', 'of commands and tests'];
  const rows = cells.map(({ graded, beside, all, own }) => [graded ? 'yes' : 'no', beside, all, own]);
  return [
    `Processes that a rollout on rootfs starts, beside those of its commands and tests (${rollouts} rollouts of each kind; aim 25)`,
    table([head, ...rows]),
    ...cells.map(({ graded, programs }) => {
      const list = Object.entries(programs).map(([name, count]) => `${name} ${count}`);
      return `${graded ? 'graded' : 'not graded'}: ${list.join(', ')}`;
    }),
  ].join('\n');
}
