/**
 * Attempts at a rollout whose evaluation fails, on real sandboxes: the next attempt resumes the agent's work, and a full disk is
 * distinguished from tests that cannot start.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container, Runtime } from '@swefarm/sandbox';
import { rootfsRuntime } from '@swefarm/sandbox';
import { type Failure, InstanceEnvironment, newId, PolicyConfig, RolloutFailure } from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  minimalImage,
  type ScriptedPolicy,
  startScriptedPolicy,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { openNode, submitOne } from './attempts.ts';
import { scene } from './maintenance/farm.ts';

const DISK_BYTES = 96 * 1024 ** 2;
const DISK_FILES = 20_000;
const open = new AbortController().signal;

let folder: string;
let scratchDir: string;
let runtime: Runtime;
let tree: string;
let threads: Threads;
let policy: ScriptedPolicy;

beforeAll(async () => {
  folder = temporaryFolder('kept');
  scratchDir = join(folder, 'scratch');
  mkdirSync(scratchDir);
  const size = `size=${DISK_BYTES},nr_inodes=${DISK_FILES}`;
  execFileSync('mount', ['-t', 'tmpfs', '-o', size, 'swefarm-test', scratchDir]);
  runtime = await rootfsRuntime({ imagesDir: join(folder, 'images'), scratchDir });
  tree = join(folder, 'tree');
  execFileSync('cp', ['-al', (await minimalImage()).tree, tree]);
  await writeFile(join(tree, 'served'), '');
  const git = (...line: string[]) => execFileSync('git', ['-C', join(tree, 'testbed'), ...line]);
  git('init', '-q');
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'base');
  threads = startThreads(1);
  policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[{ command: 'echo mended >fix.txt' }, { submit: true }]] }] },
  });
});
afterAll(async () => {
  await policy[Symbol.asyncDispose]();
  await threads[Symbol.asyncDispose]();
  await runtime[Symbol.asyncDispose]();
  execFileSync('umount', [scratchDir]);
});

/** A fault of an evaluation's container (`filled`: of an agent's). A trial applies its faults in order; later containers have none. */
type Mishap = (container: Container) => Promise<void>;
type Trial = { tests: string; mishaps: Mishap[]; environment?: InstanceEnvironment };

/** Resolves once the tests run. */
async function began(container: Container): Promise<void> {
  const options = { timeoutMs: 120_000, maxOutputBytes: 1_000, signal: open };
  while ((await container.exec(['test', '-e', '/tmp/began'], options)).exitCode !== 0) await sleep(20);
}
/** While this file exists, the tests do not end. */
const PAUSE = '/tmp/hold';
/** Kills the sandbox during its tests. */
const killed: Mishap = async (container) => {
  await began(container);
  await container[Symbol.asyncDispose]();
};
/** Ends a job as a batch scheduler does: every process gets TERM, the sandboxes' first. */
const everybodyTold: Mishap = async (container) => {
  await began(container);
  // `terminate` ignores a process that has ended since `descendants` listed it.
  for (const pid of descendants(process.pid)) terminate(pid);
  stopping.abort();
};
let stopping = new AbortController();

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function descendants(of: number): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,comm=']).toString().trim().split('\n');
  const all = lines.map((line) => line.trim().split(/\s+/)).filter(([, , name]) => name !== 'ps');
  const below = (parent: number): number[] =>
    all
      .filter(([, ppid]) => Number(ppid) === parent)
      .flatMap(([pid]) => [Number(pid), ...below(Number(pid))]);
  return below(of);
}
const engineAway: Mishap = async () => {
  throw new RolloutFailure('engine_unreachable', 'the engine is away');
};
const filled: Mishap = async () => {
  const { bavail, bsize } = await statfs(scratchDir);
  await writeFile(join(scratchDir, 'filler'), Buffer.alloc(bavail * bsize)).catch(() => undefined);
};
/** Takes all inodes while the tests run; earlier, the agent's end would meet a full disk. */
const eaten: Mishap = async (container) => {
  await began(container);
  const eating = 'mkdir eaten; cd eaten; for i in {1..25000}; do : >$i || break; done 2>/dev/null';
  execFileSync('bash', ['-c', eating], { cwd: scratchDir });
};
/** Removes, in this sandbox alone, a file that the setup needs. */
const bare: Mishap = async (container) => {
  const options = { timeoutMs: 10_000, maxOutputBytes: 1_000, signal: open };
  const removed = await container.exec(['rm', '/served'], options);
  if (removed.exitCode !== 0) throw new Error(removed.output.toString());
};
const emptied = (): Promise<void> => rm(join(scratchDir, 'filler'), { force: true });

const BESIDE_TESTS: ReadonlySet<Mishap> = new Set([killed, everybodyTold, eaten]);

/** The runtime with faults at the start of an evaluation's container, or during its tests. */
function spoilt(mishaps: Mishap[]): Runtime {
  const left = [...mishaps];
  return {
    ...runtime,
    start: async (spec, signal) => {
      const container = await runtime.start(spec, signal);
      const befalls = left[0] === filled ? 'agent' : 'evaluation';
      const mishap = spec.role === befalls ? left.shift() : undefined;
      if (mishap && BESIDE_TESTS.has(mishap)) {
        await container.putFiles([{ path: PAUSE, content: Buffer.alloc(0) }], signal);
        void mishap(container).catch(() => undefined);
      } else
        await mishap?.(container).finally(() =>
          mishap === engineAway ? container[Symbol.asyncDispose]() : null,
        );
      return container;
    },
  };
}

const script = (tests: string): string =>
  `#!/bin/bash\nset -x\ncd /testbed\n: '>>>>> Start Test Output'\n${tests}\n: '>>>>> End Test Output'\n`;
const PASSES = 'test -e fix.txt && { echo PASSED t.py::test_a; echo "=== 1 passed in 1.00s ==="; }';
const LONG = `touch /tmp/began; while [ -e ${PAUSE} ]; do sleep 0.1; done\n${PASSES}`;

async function attempts({ tests, mishaps, environment }: Trial) {
  const { farm } = await scene();
  stopping = new AbortController();
  const run = bareRun({
    group_size: 1,
    policy: PolicyConfig.parse({ urls: [policy.url], model: 'scripted' }),
    sandbox: { ...bareRun().sandbox, activate: ':' },
  });
  const instance = bareInstance({
    ...{ instance_id: 'own__kept-1', base_commit: 'HEAD', FAIL_TO_PASS: ['t.py::test_a'] },
    ...{ image: `dir:${tree}`, log_parser: 'parse_log_pytest', eval_script: script(tests) },
    ...(environment ? { environment } : {}),
  });
  const { attempt, results, ends } = await submitOne(farm, run, instance);
  const flags = { worker_id: `kept-${newId()}` };
  const node = openNode({ farm, runtime: spoilt(mishaps), threads, stop: stopping.signal, flags });
  return {
    again: () => attempt(node),
    journal: ends,
    resultOf: async () => (await results())[0],
    stored: async () => (await Array.fromAsync(farm.artifacts.runParts(run.run_id))).flat(),
    async end() {
      node.policies[Symbol.dispose]();
      await node.removals.finished();
    },
  };
}

test.each([
  { name: 'its sandbox is killed in the middle of the tests', mishap: killed, class: 'evaluation_lost' },
  { name: 'the engine is away', mishap: engineAway, class: 'engine_unreachable' },
] as const)('an evaluation is lost because $name: the next attempt grades the stored patch', async (lost) => {
  // The first container is started while the agent works, and again when that start failed.
  const mishaps = lost.mishap === engineAway ? [engineAway, engineAway] : [killed];
  const at = await attempts({ tests: LONG, mishaps });
  expect(await at.again()).toMatchObject({ next: 'later' });
  expect(await at.journal()).toEqual([`${lost.class} kept`]);
  const [stored] = await at.stored();
  const asked = policy.stats().answered;
  expect(asked).toBeGreaterThanOrEqual(2);

  expect(await at.again()).toEqual({ next: 'done' });
  expect(policy.stats().answered).toBe(asked);
  expect(await at.journal()).toEqual([`${lost.class} kept`, 'done']);
  const result = await at.resultOf();
  expect(result).toMatchObject({
    ...{ outcome: 'judged', resolved: true, reward: 1, attempt: 2, turns: 2, exit_status: 'submitted' },
    failure: null,
  });
  expect(result?.seconds.agent).toBeGreaterThan(0);
  expect(result?.seconds.model).toBeGreaterThan(0);
  // The resumable work is removed, the winner's artifact exists.
  expect((await at.stored()).map(({ attempt }) => attempt)).toEqual([2]);
  expect(stored?.attempt).toBe(1);
  await at.end();
});

test('a setup that fails in the clean sandbox alone is retried without the model', async () => {
  const environment = InstanceEnvironment.parse({
    setup: [{ name: 'serve', script: 'test -e /served', roles: ['evaluation'] }],
  });
  const at = await attempts({ tests: PASSES, mishaps: [bare], environment });
  expect(await at.again()).toMatchObject({ next: 'later' });
  expect(await at.journal()).toEqual(['setup_failed kept']);
  const asked = policy.stats().answered;

  expect(await at.again()).toEqual({ next: 'done' });
  expect(policy.stats().answered).toBe(asked);
  expect(await at.journal()).toEqual(['setup_failed kept', 'done']);
  expect(await at.resultOf()).toMatchObject({
    ...{ outcome: 'judged', resolved: true, reward: 1, attempt: 2, turns: 2, failure: null },
  });
  expect((await at.stored()).map(({ attempt }) => attempt)).toEqual([2]);
  await at.end();
});

test('a setup that fails at every evaluation gets no verdict, and the model works once', async () => {
  const environment = InstanceEnvironment.parse({
    setup: [{ name: 'serve', script: 'exit 3', roles: ['evaluation'] }],
  });
  const at = await attempts({ tests: PASSES, mishaps: [], environment });
  expect(await at.again()).toMatchObject({ next: 'later' });
  const asked = policy.stats().answered;
  expect(await at.again()).toEqual({ next: 'done' });
  expect(policy.stats().answered).toBe(asked);
  expect(await at.journal()).toEqual(['setup_failed kept', 'setup_failed']);
  expect(await at.resultOf()).toMatchObject({
    ...{ outcome: 'failed', resolved: null, reward: null, turns: 2 },
    failure: { stage: 'instance', class: 'setup_failed' },
  });
  await at.end();
});

test('a scheduler that stops sandboxes and worker at once costs the rollout nothing', async () => {
  const at = await attempts({ tests: LONG, mishaps: [everybodyTold] });
  expect(await at.again()).toMatchObject({ next: 'hand_back' });
  expect(await at.journal()).toEqual(['drained kept']);
  await at.end();
});

test('a disk filled by another is the node’s fault, a disk filled by the tests the patch’s', async () => {
  // The disk is full while the agent works, so its patch cannot be trusted either.
  const before = await attempts({ tests: PASSES, mishaps: [filled] });
  expect(await before.again()).toMatchObject({ next: 'later' });
  expect(await before.journal()).toEqual(['node_disk']);
  await emptied();
  expect(await before.again()).toEqual({ next: 'done' });
  expect(await before.resultOf()).toMatchObject({ outcome: 'judged', resolved: true, attempt: 2 });
  await before.end();

  // The patch's own tests fill the disk, which gets a verdict.
  const filling = 'dd if=/dev/zero of=/tmp/fill bs=1M; echo no tests ran';
  const during = await attempts({ tests: filling, mishaps: [] });
  expect(await during.again()).toEqual({ next: 'done' });
  expect(await during.journal()).toEqual(['done']);
  expect(await during.resultOf()).toMatchObject({
    ...{ outcome: 'judged', resolved: false, reward: 0, reward_row: 'evaluation_killed', attempt: 1 },
  });
  await during.end();

  // The same with inodes: a sandbox that takes all of them is judged, and another one is not.
  const eating = 'mkdir /tmp/i; cd /tmp/i; for i in {1..25000}; do : >$i || break; done; echo no tests ran';
  const eater = await attempts({ tests: eating, mishaps: [] });
  expect(await eater.again()).toEqual({ next: 'done' });
  expect(await eater.resultOf()).toMatchObject({ reward: 0, reward_row: 'evaluation_killed' });
  await eater.end();
  const untilNoFile = 'touch /tmp/began; n=0; while : >/tmp/n$((n++)); do sleep 0.1; done; echo no tests ran';
  const starved = await attempts({ tests: untilNoFile, mishaps: [eaten] });
  expect(await starved.again()).toMatchObject({ next: 'later' });
  expect(await starved.journal()).toEqual(['node_disk kept']);
  await rm(join(scratchDir, 'eaten'), { recursive: true });
  await starved.end();

  const broken = await attempts({ tests: 'echo cannot start; exit 1', mishaps: [] });
  expect(await broken.again()).toEqual({ next: 'done' });
  const failure: Partial<Failure> = { stage: 'instance', class: 'tests_cannot_start' };
  expect(await broken.resultOf()).toMatchObject({ outcome: 'failed', reward: null, failure });
  await broken.end();
});
