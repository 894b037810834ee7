/** Tests that the parts of a reward agree wherever they are told: answers, results, metrics, report, show and regrade. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bearer, testGateway } from '@swefarm/gateway/test/gateway.ts';
import { post, type Reply, row } from '@swefarm/gateway/test/gym.ts';
import { decideReward } from '@swefarm/grading';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import type { Result, RewardFacts } from '@swefarm/shared';
import { bareFacts, until } from '@swefarm/testkit';
import { encodeLine, outputLine } from '@swefarm/trajectories';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { linesOf, run } from './cli.ts';
import { farmVariables } from './scene.ts';

const WEIGHTS = 'resolved=1,f2p=0.5,format=-0.1,length=soft:1k:2k:-1,turns=-0.01';
const AGAIN = 'resolved=0.5,p2p=0.25,submitted=0.1';

const tests = (success: number, failure: number) => ({ success, failure });
const facts = (changes: Partial<RewardFacts>): RewardFacts =>
  bareFacts({ turns: 10, malformed_answers: 0, sequence_tokens: 100, ...changes });

type Case = { facts: RewardFacts; parts: object | undefined; reward: number | null; again: number | null };
/** The parts and rewards by WEIGHTS and by AGAIN, computed by hand. */
const CASES: Record<string, Case> = {
  'a__b-0': {
    facts: facts({ fail_to_pass: tests(2, 0), pass_to_pass: tests(3, 0) }),
    parts: { resolved: 1, f2p: 1, p2p: 1, format: 0, invalid_patch: 0, length: 0, turns: 10, submitted: 1 },
    // 1 + 0.5 - 10 × 0.01, and 0.5 + 0.25 + 0.1
    ...{ reward: 1.4, again: 0.85 },
  },
  'a__b-1': {
    facts: facts({
      ...{ resolved: false, exit_status: 'context_limit', malformed_answers: 5, sequence_tokens: 1536 },
      ...{ fail_to_pass: tests(1, 1), pass_to_pass: tests(3, 1) },
    }),
    parts: {
      ...{ resolved: 0, f2p: 0.5, p2p: 0.75, format: 0.5, invalid_patch: 0, length: 0.5 },
      ...{ turns: 10, submitted: 0 },
    },
    // 0.25 - 0.05 - 0.5 - 0.1, and 0.25 × 0.75
    ...{ reward: -0.4, again: 0.1875 },
  },
  'a__b-2': {
    facts: facts({ trust: 'forged', fail_to_pass: tests(2, 0), pass_to_pass: tests(3, 0) }),
    parts: { resolved: 0, f2p: 0, p2p: 0, format: 0, invalid_patch: 0, length: 0, turns: 10, submitted: 1 },
    // A forgery gains nothing: only the turns count.
    ...{ reward: -0.1, again: 0 },
  },
  'a__b-3': { facts: facts({ ungraded: true }), parts: undefined, reward: null, again: null },
};

test('parts agree in answers, results, metrics, report, show and regrade', async () => {
  const { url, farm, config } = await testGateway();
  const replies = Promise.all(
    Object.keys(CASES).map(async (instance_id) => {
      const reply = await post(url, row({ instance_id, _ng_rollout_index: 0, reward_weights: WEIGHTS }));
      return (await reply.json()) as Reply;
    }),
  );
  await until(async () => (await farm.queue().getJobs(['prioritized', 'waiting'])).length === 4);
  for (const { data } of await farm.queue().getJobs(['prioritized', 'waiting'])) {
    const record = await farm.runs.get(data.run_id);
    const given = CASES[data.instance_id]?.facts;
    if (!record || !given) throw new Error(`no run or no case of ${data.rollout_id}`);
    expect(record).toMatchObject({ needs: 3, reward: { weights: WEIGHTS } });
    const { row: reward_row, failure: _failure, ...decided } = decideReward(given, {}, record.reward.weights);
    const { exit_status } = given;
    await commitRollout(farm, record, data.rollout_id, {
      ...{ ...decided, reward_row, facts: given, exit_status, turns: 10 },
    });
  }

  const answers = await replies;
  const env = farmVariables(config);
  const results: Result[] = [];
  for (const answer of answers) {
    const { parts, reward } = CASES[String(answer.instance_id)] as Case;
    const result = (await farm.results.get(answer.rollout_id)) as Result;
    results.push(result);
    expect([result.reward, result.reward_parts]).toEqual([reward, parts]);
    expect(answer.reward).toBe(reward ?? 0);
    const flat = Object.entries(answer).flatMap(([key, value]) =>
      key.startsWith('part/') ? [[key.slice(5), value]] : [],
    );
    expect(Object.fromEntries(flat)).toEqual(parts ?? {});
    expect(answer.reward_components).toEqual(result.reward_components);
    expect(answer.truncated).toBe(answer.instance_id === 'a__b-1');
  }

  const text = await (await fetch(`${url}/metrics`, { headers: bearer() })).text();
  const metric = (name: string, part: string): number =>
    Number(new RegExp(`^${name}\\{kind="collection"${part}\\} (.+)$`, 'm').exec(text)?.[1]);
  expect(metric('swefarm_reward_total', '')).toBeCloseTo(1.4 - 0.4 - 0.1, 9);
  // The resolve rate does not depend on the weights.
  expect(metric('swefarm_rollouts_resolved_total', '')).toBe(1);
  const sums = { resolved: 1, f2p: 1.5, p2p: 1.75, format: 0.5, length: 0.5, turns: 30, submitted: 2 };
  for (const [part, sum] of Object.entries(sums)) {
    expect(metric('swefarm_reward_part_total', `,part="${part}"`)).toBeCloseTo(sum, 9);
    expect(metric('swefarm_reward_part_rollouts_total', `,part="${part}"`)).toBe(3);
  }

  const output = join(await testFolder(), 'out.jsonl');
  const lines = results.map((result) => encodeLine(outputLine(result, { patch: 'p', report: null })));
  await writeFile(output, lines.map((line) => `${line}\n`).join(''));
  const report = JSON.parse((await run(['report', output, '--json'], env)).stdout);
  const { unknown: means } = report.parts;
  for (const [part, sum] of Object.entries(sums)) {
    expect(means[part].mean).toBeCloseTo(sum / 3, 9);
    expect(means[part].rollouts).toBe(3);
  }
  const shown = await run(['show', `${output}#a__b-1.0`, '--full'], env);
  expect(shown.stdout).toContain('made of resolved 0.0, f2p 0.25, format -0.05, length -0.5, turns -0.1');
  expect(shown.stdout).toContain('parts without weights: resolved 0.0, f2p 0.5, p2p 0.75, format 0.5');

  const regraded = await run(['regrade', output, '--reward', AGAIN, '--output', `${output}.again`], env);
  expect(regraded.code, regraded.stderr).toBe(0);
  expect(regraded.stderr).toContain('an empty patch that is submitted at once earns 0.1');
  const again = await linesOf(`${output}.again`);
  expect(again.map(({ instance_id, reward }) => [instance_id, reward])).toEqual(
    answers.map(({ instance_id }) => [instance_id, CASES[String(instance_id)]?.again]),
  );
  // The weights of the run give the same lines again.
  const back = await run(
    ['regrade', `${output}.again`, '--reward', WEIGHTS, '--output', `${output}.back`],
    env,
  );
  expect(back.code, back.stderr).toBe(0);
  const rewards = (await linesOf(`${output}.back`)).map(({ reward, reward_parts: parts }) => [reward, parts]);
  expect(rewards).toEqual(results.map(({ reward, reward_parts: parts }) => [reward, parts]));

  const bad = await run(['regrade', output, '--reward', 'solved=1'], env);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('--reward: unknown part "solved"')]);
});
