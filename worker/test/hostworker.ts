/** A real worker on the `host` runtime in this process, for tests of whole rollouts without an engine. */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createWorkerMetrics, type Farm, type Instance, loadConfig, newId, silentLog } from '@swefarm/shared';
import { bareInstance, bareRun, printingScript } from '@swefarm/testkit';
import { onTestFinished } from 'vitest';
import { openEndpoints } from '../src/agent/policy/endpoints.ts';
import { watchPolicies } from '../src/agent/policy/watch.ts';
import { createEvaluationLock } from '../src/evaluation/evaluationlock.ts';
import { createNodeBreaker } from '../src/node/breaker.ts';
import { identify } from '../src/node/identity.ts';
import type { Node } from '../src/node/node.ts';
import { openPaces } from '../src/node/paces.ts';
import { startPull } from '../src/pull.ts';
import { ActiveAttempts } from '../src/rollout/active.ts';
import { runRollout } from '../src/rollout/rollout.ts';
import { hostRuntime } from '../src/sandbox/host/runtime.ts';
import { createRemovals } from '../src/sandbox/removals.ts';
import type { Threads } from '../src/threads/pool.ts';

/** A tree with one commit, as an image of the `host` runtime. */
export async function makeTree(folder: string): Promise<void> {
  const tree = join(folder, 'tree');
  await mkdir(tree);
  const git = (...line: string[]) => execFileSync('git', ['-C', tree, ...line]);
  git('init', '-q');
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'base');
}

/** An instance of {@link makeTree}'s tree, and what a run on it has beside its agent and policy. */
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
  /** How often it hears of policies. */
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
  const log = silentLog() as never;
  const identity = identify(farm.id, `w-${newId()}`, 'n1');
  const endpoints = openEndpoints();
  const policies = watchPolicies({ farm, worker: identity.worker, endpoints, log, intervalMs });
  const node: Node = {
    ...{ rollout: runRollout, router: null, identity, farm, runtime, threads, endpoints, policies, log },
    owner: { farm: farm.id, worker: identity.worker, pid: identity.pid, pid_started: identity.pid_started },
    ...{ active: new ActiveAttempts(), breaker: createNodeBreaker(log, async () => true) },
    ...{
      stop: new AbortController().signal,
      metrics: createWorkerMetrics(),
      evaluationLock: createEvaluationLock(),
    },
    ...{ removals: createRemovals(), cleanImages: new Set(), paces: openPaces(), hostRewards, liveTurns: 0 },
    ...{ ceilings: loadConfig('worker', { env: {} }), policyPauseLimitMs: limitMs },
  };
  const pull = startPull(node, slots, prefix);
  onTestFinished(async () => {
    await pull.drain({ finishMs: 0, handBackMs: 5_000 });
    policies[Symbol.dispose]();
    await node.removals.finished();
  });
  return { sandboxes: async () => (await runtime.listOwned()).length };
}
