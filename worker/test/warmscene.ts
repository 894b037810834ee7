/** A worker's sandboxes that wait ready, on a real runtime and the tests' Redis: runs whose jobs wait in the queue, and attempts at them. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OwnedContainer, Runtime } from '@swefarm/sandbox';
import {
  type Farm,
  Instance,
  InstanceEnvironment,
  loadConfig,
  newId,
  type Result,
  RunRecord,
  silentLog,
} from '@swefarm/shared';
import { importTree, minimalImage } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { createWorkerMetrics } from '../src/metrics/workermetrics.ts';
import { createNode, type Node } from '../src/node/node.ts';
import { startWarming, type Warming } from '../src/node/warming.ts';
import { attemptRollout } from '../src/rollout/attempt.ts';
import { runRollout } from '../src/rollout/rollout.ts';
import { noThreads } from '../src/simulated.ts';
import { scene } from './maintenance/farm.ts';

export const SOCKET = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

/** The setup leaves something behind, a path is hidden, and the history is one commit. */
export const ENVIRONMENT = InstanceEnvironment.parse({
  workdir: '/testbed',
  activate: 'CRATES=1; export CRATES',
  env: { DEPOT: 'north' },
  setup: [{ name: 'stock', script: 'echo full >stock.txt' }],
  hidden: ['/testbed/answers'],
  history: 'replaced',
});

/** A root file system with a repository of two commits; `says`: what its file says. */
export async function makeTree(folder: string, says: string): Promise<string> {
  const tree = join(folder, newId());
  execFileSync('cp', ['-a', (await minimalImage()).tree, tree]);
  const work = join(tree, 'testbed');
  await mkdir(join(work, 'answers'), { recursive: true });
  await writeFile(join(work, 'crate.txt'), `${says}\n`);
  await writeFile(join(work, 'answers/all.txt'), 'ten\n');
  const git = (...line: string[]) =>
    execFileSync('git', ['-C', work, '-c', 'user.name=t', '-c', 'user.email=t@t', ...line]);
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-qm', 'one');
  git('commit', '-qm', 'two', '--allow-empty');
  return tree;
}

/** Under a name of its own, which goes with the test file. */
export async function importAs(tree: string, name: string): Promise<void> {
  await importTree(SOCKET, tree, name);
}

export async function openFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'swefarm-warm-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

export type RunGiven = { rollouts: number; memoryBytes?: number; timeLimit?: number };

export type WarmScene = {
  farm: Farm;
  node: Node;
  warming: Warming;
  /** A run whose jobs wait in the queue; its rollouts. */
  submit(given: RunGiven): Promise<string[]>;
  /** One attempt, as the puller starts it. */
  attempt(rolloutId: string): Promise<Result>;
  waiting(): Promise<number>;
  asked(found: 'hit' | 'miss'): Promise<number>;
  discarded(reason: string): Promise<number>;
  /** Sandboxes of this worker. */
  owned(): Promise<OwnedContainer[]>;
};

export type WarmGiven = { runtime: Runtime; image: string; policyUrl: string; most: number };

/** The pressure is a stand-in that has room: what a worker does under pressure is to pause, which the test does. */
const ROOMY = { hasRoom: async () => true };

/** Works until the test ends, and then checks that nothing of it is left. */
export async function openWarmScene({ runtime, image, policyUrl, most }: WarmGiven): Promise<WarmScene> {
  const { farm } = await scene();
  const flags = {
    ...{ worker_id: `warm-${newId()}`, node: 'n1', placement: 'off', live_turns: 0 },
    ...{ warm_sandboxes: most, warm_idle_cpus: 0 },
  };
  const node = createNode({
    config: loadConfig('worker', { env: {}, flags }),
    ...{ farm, runtime, threads: noThreads, runRollout, metrics: createWorkerMetrics() },
    stop: new AbortController().signal,
    log: silentLog(),
    isWell: async () => true,
  });
  const warming = startWarming({ node, pressure: ROOMY, idleCpus: 0 });
  const owned = async (): Promise<OwnedContainer[]> =>
    (await runtime.listOwned()).filter(({ owner }) => owner.worker === flags.worker_id);
  onTestFinished(async () => {
    await warming.end();
    node.active.abortAll('drain');
    node.policies[Symbol.dispose]();
    await node.removals.finished();
  });
  const read = async (
    metric: 'warmWaiting' | 'warmAsked' | 'warmDiscarded',
    labels: Record<string, string> = {},
  ): Promise<number> => {
    const { values } = await node.metrics[metric].get();
    const found = values.find((one) =>
      Object.entries(labels).every(
        ([name, value]) => (one.labels as Record<string, unknown>)[name] === value,
      ),
    );
    return found?.value ?? 0;
  };
  return {
    ...{ farm, node, warming, owned },
    submit: (given) => submitRun(farm, image, policyUrl, given),
    attempt: (id) => attemptAt(node, id),
    waiting: () => read('warmWaiting'),
    asked: (found) => read('warmAsked', { found }),
    discarded: (reason) => read('warmDiscarded', { reason }),
  };
}

/** The jobs wait in the queue. */
export async function submitRun(
  farm: Farm,
  image: string,
  policyUrl: string,
  { rollouts, memoryBytes = 256 * 1024 ** 2, timeLimit = 600 }: RunGiven,
): Promise<string[]> {
  const run = RunRecord.parse({
    ...{ format: 'swefarm-run-1', run_id: newId(), created_at: '2026-01-02T03:04:05.000Z' },
    dataset: { path: 'rows.jsonl', sha256: 'ab', instances: 1 },
    group_size: rollouts,
    agent: { time_limit: timeLimit },
    policy: { urls: [policyUrl], model: 'scripted', token_mode: 'text', require_tokens: false },
    sandbox: { activate: 'exit 9', memory_bytes: memoryBytes },
    evaluation: { enabled: false },
    reward: { table: 'default', hash: 'cd' },
  });
  const instance = Instance.parse({
    ...{ instance_id: 'own__warm-1', repo: 'own/warm', base_commit: 'HEAD', problem_statement: 'Mend it.' },
    ...{ FAIL_TO_PASS: ['t.py::test_a'], PASS_TO_PASS: [], family: 'custom', image },
    ...{ log_parser: 'parse_log_pytest', eval_script: ':', environment: ENVIRONMENT },
  });
  await farm.runs.create(run, [instance]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  return ids;
}

/** The job stays in the queue, so that the rest of the run is still next. */
async function attemptAt(node: Node, id: string): Promise<Result> {
  const job = (await node.farm.jobs.next(100)).find(({ rollout_id }) => rollout_id === id);
  if (!job) throw new Error(`the queue has no job ${id}`);
  await node.active.during(id, (signal) => attemptRollout(job, node, signal));
  const { results } = await node.farm.results.read(job.run_id, '0');
  const mine = results.find(({ result }) => result.rollout_id === id)?.result;
  if (!mine) throw new Error(`${id} has no result: ${JSON.stringify(await node.farm.journal.read(id))}`);
  return mine;
}

/** What the environment answered to the agent's commands, one text. */
export async function observations({ farm }: WarmScene, { artifact }: Result): Promise<string> {
  const content = artifact === null ? null : await farm.artifacts.read(artifact);
  const said = content?.trajectory?.messages.filter(({ role }) => role !== 'assistant') ?? [];
  return said.map((message) => String(message.content)).join('\n');
}
