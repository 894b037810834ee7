/** A real worker on the `host` runtime in this process, for tests of whole rollouts without an engine. */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hostRuntime } from '@swefarm/sandbox';
import { type Farm, type Instance, loadConfig, newId, silentLog } from '@swefarm/shared';
import { bareInstance, bareRun, printingScript } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { createWorkerMetrics } from '../src/metrics/workermetrics.ts';
import { createNode } from '../src/node/node.ts';
import { startPull } from '../src/pull/pull.ts';
import { runRollout } from '../src/rollout/rollout.ts';
import type { Threads } from '../src/threads/pool.ts';

/** A tree with one commit, as an image of the `host` runtime. */
export async function makeTree(folder: string): Promise<void> {
  const tree = join(folder, 'tree');
  await mkdir(tree);
  const git = (...line: string[]) => execFileSync('git', ['-C', tree, ...line]);
  git('init', '-q');
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'base');
}

/** An instance of {@link makeTree}'s tree, and the settings of a run besides agent and policy. */
export const treeInstance = (folder: string): Instance =>
  bareInstance({
    ...{ image: `dir:${join(folder, 'tree')}`, base_commit: 'HEAD' },
    ...{ eval_script: printingScript("w('')"), log_parser: 'parse_log_pytest' },
  });
export const ungraded = () => ({
  evaluation: { ...bareRun().evaluation, enabled: false },
  sandbox: { ...bareRun().sandbox, activate: ':' },
});

type HostWorker = {
  farm: Farm;
  prefix: string;
  folder: string;
  threads: Threads;
  slots: number;
  limitMs: number;
  /** Interval of reading the policies. */
  intervalMs?: number;
  hostRewards?: boolean;
};

/** Works until the test ends. */
export async function startHostWorker({
  farm,
  prefix,
  folder,
  threads,
  slots,
  limitMs,
  intervalMs = 50,
  hostRewards = false,
}: HostWorker) {
  const runtime = await hostRuntime({ scratchDir: join(folder, newId()) });
  const flags = {
    worker_id: `w-${newId()}`,
    node: 'n1',
    host_rewards: hostRewards,
    live_turns: 0,
    policy_pause_limit_seconds: limitMs / 1000,
  };
  const node = createNode({
    config: loadConfig('worker', { env: {}, flags }),
    farm,
    runtime,
    threads,
    runRollout,
    metrics: createWorkerMetrics(),
    stop: new AbortController().signal,
    log: silentLog(),
    isWell: async () => true,
    policyIntervalMs: intervalMs,
  });
  const pull = startPull(node, slots, prefix);
  onTestFinished(async () => {
    await pull.drain({ finishMs: 0, handBackMs: 5_000 });
    node.policies[Symbol.dispose]();
    await node.removals.finished();
  });
  return { sandboxes: async () => (await runtime.listOwned()).length };
}
