import { cumulative } from '@swefarm/policy';
import type { ArtifactContent, ExitStatus, ToolDefinition, Trajectory } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { aResult } from '../../../test/result.ts';
import { answerPieces } from './answer.ts';
import { GymRow } from './row.ts';

const SUBMIT: ToolDefinition = {
  type: 'function',
  function: {
    name: 'submit_solution',
    description: 'Hand in the work.',
    parameters: { type: 'object', properties: {}, required: [], additionalProperties: false },
  },
};

const SPANS = [
  { version: 'step-41', tokens: 60 },
  { version: 'step-42', tokens: 30 },
];

/** The answer to a rollout that a number judged. */
function scored(reward: number, reward_components?: Record<string, number>) {
  const result = aResult({ reward, resolved: null, ...(reward_components ? { reward_components } : {}) });
  const row = GymRow.parse({ responses_create_params: { input: [] } });
  const answer = { row, result, content: null, repo: 'a/b', evaluationTimeout: 1, unjudged: null };
  const text = [...answerPieces({ ...answer, lines: 'main', trajectory: false })].map(String).join('');
  return { text, told: JSON.parse(text) as Record<string, unknown> };
}

function answerTo(exit_status: ExitStatus | null, tools?: ToolDefinition[]) {
  const made = madeTrajectory(2, 0);
  const trajectory = { ...made, ...(tools ? { tools } : {}) };
  trajectory.turns[1] = {
    ...trajectory.turns[1],
    policy_version: { start: 'step-41', end: 'step-42' },
    spans: SPANS,
  } as (typeof made.turns)[number];
  const text = textOf(trajectory, exit_status);
  // A parser would take the last value of a repeated key.
  expect(text.match(/"policy_version":"step-4/g)).toHaveLength(made.turns.length);
  return JSON.parse(text) as Told;
}

type Told = {
  responses_create_params: { tools: unknown[] };
  response: {
    tools: unknown[];
    status: string;
    incomplete_details: unknown;
    output: {
      policy_version?: string;
      policy_spans?: unknown;
      prompt_token_ids?: number[];
      generation_token_ids?: number[];
    }[];
  };
};

function textOf(trajectory: Trajectory, exit_status: ExitStatus | null): string {
  const content = { trajectory, patch: '', report: null } as unknown as ArtifactContent;
  const row = GymRow.parse({ responses_create_params: { input: [] } });
  const pieces = answerPieces({
    row,
    result: aResult({ exit_status }),
    content,
    repo: 'a/b',
    evaluationTimeout: 1,
    unjudged: null,
    lines: 'all',
    trajectory: false,
  });
  return [...pieces].map(String).join('');
}

test('the tools of an answer are those of the request, called or not', () => {
  const shown = [{ type: 'function', strict: false, ...SUBMIT.function }];
  const { responses_create_params, response } = answerTo('submitted', [SUBMIT]);
  expect(responses_create_params.tools).toEqual(shown);
  expect(response.tools).toEqual(shown);
  expect(answerTo('submitted').response.tools).toEqual([]);
});

test.each<[ExitStatus | null, string, unknown]>([
  ['submitted', 'completed', null],
  ['context_limit', 'incomplete', { reason: 'max_output_tokens' }],
  ['turn_limit', 'incomplete', null],
  ['time_limit', 'incomplete', null],
  ['format_limit', 'incomplete', null],
  [null, 'incomplete', null],
])('a rollout that ended by %s says no other reason than tokens', (exit, status, details) => {
  expect(answerTo(exit).response).toMatchObject({ status, incomplete_details: details });
});

test('the item with the tokens of a call names the weights that sampled them', () => {
  const trained = answerTo('submitted').response.output.filter((item) => item.generation_token_ids);
  expect(trained.map((item) => item.policy_version)).toEqual(['step-41', 'step-42']);
  expect(trained.map((item) => item.policy_spans)).toEqual([undefined, SPANS]);
});

test('stored suffixes give the prompts, also after one that does not continue', () => {
  const made = madeTrajectory(6, 0);
  let seen = 0;
  for (const [index, { tokens }] of made.turns.entries()) {
    if (!tokens) throw new Error('every turn has tokens');
    tokens.prefix_length = index === 2 ? 3 : seen;
    seen = tokens.prefix_length + tokens.prompt_suffix.length + tokens.generation.length;
  }
  const { output } = (JSON.parse(textOf(made, 'submitted')) as Told).response;
  const stored = [...cumulative(made.turns.map(({ tokens }) => tokens))].map(({ prompt, generation }) => ({
    prompt_token_ids: Array.from(prompt),
    generation_token_ids: Array.from(generation),
  }));
  expect(stored).toHaveLength(6);
  expect(output.filter((item) => item.generation_token_ids)).toMatchObject(stored);
});

test('a score is a float, and NeMo RL gets its parts as components only if they add up', () => {
  const adding = scored(0.75, { tests: 0.25, style: 0.5 });
  expect(adding.told).toMatchObject({
    ...{ reward: 0.75, resolved: null, judged: true },
    ...{ reward_components: { tests: 0.25, style: 0.5 }, 'score/tests': 0.25, 'score/style': 0.5 },
  });
  const other = scored(1, { reward: 1, kept: 0.5 });
  expect(other.told).toMatchObject({ 'score/reward': 1, 'score/kept': 0.5 });
  expect(other.told).not.toHaveProperty('reward_components');
  expect(other.text).toContain('"score/reward":1.0');
  expect(scored(-2).text).toContain('"reward":-2.0');
});
