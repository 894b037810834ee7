/** A real worker on the `host` runtime in this process, for tests of whole rollouts without an engine. */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hostRuntime } from '@swefarm/sandbox';
import { type Farm, type Instance, newId, type RunRecord } from '@swefarm/shared';
import { bareInstance, bareRun, printingScript } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { startPull } from '../src/pull/pull.ts';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { openNode } from './attempts.ts';
import { openScene } from './maintenance/farm.ts';

/** A tree with one commit, as an image of the `host` runtime. */
async function makeTree(folder: string): Promise<void> {
  const tree = join(folder, 'tree');
  await mkdir(tree);
  const git = (...line: string[]) => execFileSync('git', ['-C', tree, ...line]);
  git('init', '-q');
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'base');
}

/** An instance of {@link makeTree}'s tree; `ungraded` returns the settings of a run without evaluation. */
export const treeInstance = (folder: string): Instance =>
  bareInstance({
    ...{ image: `dir:${join(folder, 'tree')}`, base_commit: 'HEAD' },
    ...{ eval_script: printingScript("w('')"), log_parser: 'parse_log_pytest' },
  });
export const ungraded = () => ({
  evaluation: { ...bareRun().evaluation, enabled: false },
  sandbox: { ...bareRun().sandbox, activate: ':' },
});

export type Host = { folder: string; threads: Threads };

/** A folder with a tree, and threads, for all tests of a file. */
export function useHost(name: string): Host {
  const host = {} as Host;
  beforeAll(async () => {
    host.folder = temporaryFolder(name);
    await makeTree(host.folder);
    host.threads = startThreads(1);
  });
  afterAll(() => host.threads[Symbol.asyncDispose]());
  return host;
}

/** Submits a run, and runs its rollouts on one worker until all have their results. `patches`: those of the rollouts, by name. */
export async function runOnHost(
  host: Host,
  run: RunRecord,
  instance: Instance,
  more: { hostRewards?: boolean; patches?: readonly (readonly [string, string])[] } = {},
) {
  const prefix = `{h-${newId()}}`;
  const { farm, deps } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  await farm.runs.create(run, [instance], more.patches ?? []);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  await startHostWorker({ farm, prefix, ...host, slots: 2, limitMs: 60_000, ...more });
  const committed = async () => (await farm.results.counts(run.run_id)).committed;
  await expect.poll(committed, { timeout: 250_000, interval: 100 }).toBe(ids.length);
  return { farm, deps, ids };
}

type HostWorker = Host & {
  farm: Farm;
  prefix: string;
  slots: number;
  limitMs: number;
  /** Stops the worker as SIGTERM does. */
  stop?: AbortSignal;
  /** Interval of reading the policies. */
  intervalMs?: number;
  hostRewards?: boolean;
};

/** Starts a worker that works until the test ends. */
export async function startHostWorker({
  farm,
  prefix,
  folder,
  threads,
  slots,
  limitMs,
  stop = new AbortController().signal,
  intervalMs = 50,
  hostRewards = false,
}: HostWorker) {
  const runtime = await hostRuntime({ scratchDir: join(folder, newId()) });
  const flags = { host_rewards: hostRewards, policy_pause_limit_seconds: limitMs / 1000, placement: 'auto' };
  const node = openNode({ farm, runtime, threads, flags, stop, policyIntervalMs: intervalMs });
  const pull = startPull(node, slots, prefix);
  onTestFinished(async () => {
    await pull.drain({ finishMs: 0, handBackMs: 5_000 });
    node.policies[Symbol.dispose]();
    node.admission[Symbol.dispose]();
    await node.removals.finished();
  });
  return { node, sandboxes: async () => (await runtime.listOwned()).length };
}
