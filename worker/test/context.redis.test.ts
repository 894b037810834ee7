/** A context too small for the first prompt: the rollouts fail without a reward, and the run is paused. */

import { PolicyConfig } from '@swefarm/shared';
import { bareRun, startScriptedPolicy } from '@swefarm/testkit';
import { expect, onTestFinished, test, vi } from 'vitest';
import { pauseFailingRuns } from '../src/maintenance/pauseruns.ts';
import { runOnHost, treeInstance, ungraded, useHost } from './hostworker.ts';

vi.setConfig({ testTimeout: 240_000 });

const host = useHost('context');
const NEVER = new AbortController().signal;
/** Number of failed rollouts at which a run is paused. */
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
  const run = bareRun({
    ...{ group_size: rollouts, ...ungraded() },
    policy: PolicyConfig.parse({ urls: [policy.url], model: 'm', patience: 0, ...config }),
  });
  const { farm, deps, ids } = await runOnHost(host, run, treeInstance(host.folder));
  expect(ids).toHaveLength(rollouts);
  const message = expect.stringMatching(words);
  for (const id of ids)
    expect(await farm.results.get(id)).toMatchObject({
      ...{ outcome: 'failed', reward: null, exit_status: null, turns: 0, attempt: 1 },
      failure: { class: 'policy_context', stage: 'policy', attempts: 1, message },
    });
  await pauseFailingRuns.run(deps, NEVER);
  const reason = `${MANY} of ${MANY} rollouts failed by infrastructure (policy_context ${MANY})`;
  const paused = await farm.groups.paused(run.run_id);
  expect(paused?.reason ?? null).toBe(rollouts === MANY ? reason : null);
});
