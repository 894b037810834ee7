/** Rollouts of an instance with the same patch are evaluated once, and their results are those of evaluating each. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId, PolicyConfig, type RunRecord } from '@swefarm/shared';
import { bareRun, markedScript, startScriptedPolicy } from '@swefarm/testkit';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runOnHost, treeInstance, useHost } from './hostworker.ts';

vi.setConfig({ testTimeout: 240_000 });

const host = useHost('samepatch');
const GROUP = 16;
/** Commands of a model that knows four patches, and how many of 16 rollouts write each. */
const PATCHES = [
  [6, 'echo right > answer'],
  [5, 'echo wrong > answer'],
  [3, 'echo broken > answer'],
  [2, 'echo right > answer; echo more > more'],
] as const;

/**
 * An instance whose script notes each evaluation in a file. No rollout takes a verdict on `broken`, whose tests print no outcome, and on
 * `more`, whose log is suspicious because it has no end of the session.
 */
function countedInstance() {
  const file = join(host.folder, newId());
  writeFileSync(file, '');
  const script = markedScript([
    `cat answer more >> ${file}`,
    'if grep -q broken answer; then exit 3; fi',
    'if grep -q right answer; then echo PASSED t::one; else echo FAILED t::one; fi',
    'if [ ! -e more ]; then echo "=== 1 passed in 1.00s ==="; fi',
  ]);
  const instance = { ...treeInstance(host.folder), eval_script: script };
  return { instance, evaluated: () => readFileSync(file, 'utf8').trim().split('\n').sort() };
}

async function play(grade_once: 'on' | 'unresolved' | 'off', change: Partial<RunRecord> = {}, health = {}) {
  const variants = PATCHES.map(([, command]) => [{ command }, { submit: true as const }]);
  const weights = PATCHES.map(([count]) => count);
  const policy = await startScriptedPolicy({
    script: { model: 'm', conversations: [{ variants, weights }] },
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const run = bareRun({
    group_size: GROUP,
    policy: PolicyConfig.parse({ urls: [policy.url], model: 'm' }),
    evaluation: { ...bareRun().evaluation, grade_once, timeout: 60 },
    sandbox: { ...bareRun().sandbox, activate: ':' },
    reward: { ...bareRun().reward, host: true },
    ...change,
  });
  const { instance, evaluated } = countedInstance();
  const { farm, ids } = await runOnHost(host, run, { ...instance, ...health }, { hostRewards: true });
  const rollouts = await Promise.all(
    ids.map(async (id) => {
      const result = await farm.results.get(id);
      const content = result?.artifact ? await farm.artifacts.read(result.artifact) : null;
      return { result, content };
    }),
  );
  return { rollouts, evaluated };
}

const verdictsOf = ({ rollouts }: Awaited<ReturnType<typeof play>>) =>
  rollouts.map(({ result, content }) => ({
    index: result?.rollout_index,
    ends: [result?.outcome, result?.resolved, result?.reward, result?.reward_row, result?.failure?.class],
    facts: { ...result?.facts, policy_share: 0, policy_pace: null },
    report: content?.report,
    patch: content?.patch,
    hasLog: content?.test_log !== null,
  }));

test('by default, a run with weights of its reward grades each patch', async () => {
  const weighted = { ...bareRun().reward, host: true, weights: 'f2p=1' } as RunRecord['reward'];
  const { rollouts } = await play('unresolved', { reward: weighted });
  expect(rollouts.filter(({ result }) => result?.graded_by !== undefined)).toEqual([]);
});

test('groups of 16 with four patches: one evaluation a patch, and the verdicts of grading each', async () => {
  const once = await play('on');
  const each = await play('off');
  const failed = await play('unresolved');
  for (const played of [once, failed]) expect(verdictsOf(played)).toEqual(verdictsOf(each));
  const takers = failed.rollouts.filter(({ result }) => result?.graded_by !== undefined);
  expect(takers.map(({ result }) => result?.resolved)).toEqual([false, false, false, false]);
  // The audit evaluates one resolved patch in a hundred again.
  const [own, shared] = [each.evaluated(), once.evaluated()];
  const count = (all: readonly string[], answer: string) => all.filter((one) => one === answer).length;
  expect([count(own, 'wrong'), count(own, 'broken')]).toEqual([5, 3]);
  expect(count(shared, 'more')).toBeGreaterThan(1);
  expect([count(shared, 'wrong'), count(shared, 'broken')]).toEqual([1, 3]);
  expect(count(shared, 'right')).toBeLessThan(count(own, 'right'));
  const taken = once.rollouts.filter(({ result }) => result?.graded_by !== undefined);
  expect(taken).toHaveLength(5 + 4);
  for (const { result, content } of taken) {
    const { result: leader, content: graded } =
      once.rollouts.find(({ result: other }) => other?.rollout_id === result?.graded_by) ?? {};
    expect([leader?.graded_by, graded?.patch]).toEqual([undefined, content?.patch]);
  }
  console.log(
    `evaluations: ${GROUP} graded each, ${GROUP - taken.length} once a patch: ${Math.round((100 * taken.length) / GROUP)} % saved`,
  );
});
