/** A context too small for the first prompt: the rollouts fail without a reward, and the run is paused. */

import { newId, PolicyConfig } from '@swefarm/shared';
import { bareRun, startScriptedPolicy } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { pauseFailingRuns } from '../src/maintenance/pauseruns.ts';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { makeTree, startHostWorker, treeInstance, ungraded } from './hostworker.ts';
import { openScene } from './maintenance/farm.ts';

const POLL = { timeout: 120_000, interval: 100 };
vi.setConfig({ testTimeout: 240_000 });

let folder: string;
let threads: Threads;
beforeAll(async () => {
  folder = temporaryFolder('context');
  await makeTree(folder);
  threads = startThreads(1);
});
afterAll(async () => {
  await threads[Symbol.asyncDispose]();
});

const NEVER = new AbortController().signal;
/** Rollouts until a run is paused. */
const MANY = 20;

test.each([
  ['vllm', MANY, { sampling: { max_tokens: 40_000 } }, /You passed \d+ input tokens/],
  ['sglang', 1, {}, /The input \(\d+ tokens\) is longer than the model's context length/],
  [
    'nemo-rl',
    1,
    { sampling: { max_tokens: 40_000 }, token_mode: 'echo' },
    /You passed \d+ input tokens and requested 0/,
  ],
  [
    'sglang',
    1,
    { token_mode: 'token-in', require_tokens: true },
    /the prompt has \d+ tokens, and prompt and answer may have 64/,
  ],
] as const)('%s, %i rollouts, %j', async (dialect, rollouts, config, words) => {
  const policy = await startScriptedPolicy({
    script: { model: 'm', conversations: [{ variants: [[{ submit: true }]] }] },
    ...{ dialect, contextLimit: 64 },
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const prefix = `{c-${newId()}}`;
  const { farm, deps } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const run = bareRun({
    ...{ group_size: rollouts, ...ungraded() },
    policy: PolicyConfig.parse({ urls: [policy.url], model: 'm', patience: 0, ...config }),
  });
  await farm.runs.create(run, [treeInstance(folder)]);
  const ids = await farm.groups.rollouts(run.run_id);
  await farm.jobs.enqueue(run, ids);
  await startHostWorker({ farm, prefix, folder, threads, slots: 2, limitMs: 60_000 });
  await expect.poll(async () => (await farm.results.counts(run.run_id)).committed, POLL).toBe(rollouts);

  for (const id of ids)
    expect(await farm.results.get(id)).toMatchObject({
      ...{ outcome: 'failed', reward: null, exit_status: null, turns: 0, attempt: 1 },
      failure: {
        class: 'policy_context',
        stage: 'policy',
        attempts: 1,
        message: expect.stringMatching(words),
      },
    });
  await pauseFailingRuns.run(deps, NEVER);
  expect((await farm.groups.paused(run.run_id))?.reason ?? null).toBe(
    rollouts === MANY
      ? `${MANY} of ${MANY} rollouts failed by infrastructure (policy_context ${MANY})`
      : null,
  );
});
