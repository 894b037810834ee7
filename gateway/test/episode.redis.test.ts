/** Episodes as a released Gym posts them to environment servers. */
import { expect, test } from 'vitest';
import { testGateway } from './gateway.ts';
import { post, row } from './gym.ts';
import { failed, judged, startPlayer, withheld } from './player.ts';

const TASK = { taskset: 'swe:gym', task_id: 'a__b-1' };

function episode(id: string, over: Record<string, unknown> = {}, attempt = 0): Record<string, unknown> {
  const { responses_create_params, ...task_data } = row();
  return {
    episode_id: { rollout_id: id, attempt },
    task: { task_id: TASK, task_input: { responses_create_params, task_data, ...over } },
  };
}

const told = async (reply: Response): Promise<[number, Record<string, unknown>]> => [
  reply.status,
  (await reply.json()) as Record<string, unknown>,
];

test('a verdict is the result of the episode, once for each attempt', async () => {
  const { url, farm } = await testGateway();
  const { seen } = startPlayer(farm, () => judged(1));
  const [status, body] = await told(await post(url, episode('3-0')));
  expect([status, body]).toMatchObject([
    200,
    {
      episode_id: { rollout_id: '3-0', attempt: 0 },
      task_id: TASK,
      result: { reward: 1, instance_id: 'a__b-1', response: { object: 'response' } },
    },
  ]);
  expect(Object.keys(body).toSorted()).toEqual(['episode_id', 'result', 'task_id']);
  const result = body.result as Record<string, unknown>;
  expect(Object.keys(result).filter((key) => /^_ng_|^ng_trajectory$/.test(key))).toEqual([]);
  const [, again] = await told(await post(url, episode('3-0')));
  expect(again).toMatchObject({ result: { rollout_id: result.rollout_id } });
  const [, second] = await told(await post(url, episode('3-0', {}, 1)));
  expect(second).toMatchObject({ episode_id: { attempt: 1 } });
  expect(seen).toHaveLength(2);
});

test('the task input may contain the fields of the instance directly', async () => {
  const { url, farm } = await testGateway();
  startPlayer(farm, () => judged(0));
  const { responses_create_params, ...fields } = row();
  const flat = {
    episode_id: { rollout_id: 'flat' },
    task: { task_id: TASK, task_input: { responses_create_params, ...fields } },
  };
  expect(await told(await post(url, flat))).toMatchObject([200, { result: { reward: 0, judged: true } }]);
});

test.each([
  ['a broken instance', failed('image_not_found', 'image'), true, 'swe_farm:image_not_found', 'seed'],
  ['infrastructure', failed('policy_unreachable'), false, 'transport_unreachable', 'agent'],
  ['a lost worker', failed('lost', 'worker'), false, 'session_lost', 'agent'],
  ['a node without memory', failed('node_memory', 'sandbox'), false, 'provider_oom_killed', 'agent'],
  ['a failed grading', failed('evaluation_lost', 'evaluation'), false, 'verifier_error', 'verification'],
  ['no reward by intention', withheld, true, 'swe_farm:no_reward', undefined],
])(
  '%s is its failure, with 200 and nothing beside it, to a collector and to a trainer',
  async (_what, ending, terminal, kind, stage) => {
    for (const gateway_failures of ['auto', 'nemo-rl'] as const) {
      const { url, farm } = await testGateway({ gateway_failures });
      startPlayer(farm, () => ending);
      const [status, body] = await told(await post(url, episode('r1')));
      expect(status).toBe(200);
      expect(body).toEqual({
        episode_id: { rollout_id: 'r1', attempt: 0 },
        task_id: TASK,
        failure: {
          failure_reason: expect.any(String),
          terminal,
          failure_kind: kind,
          ...(stage === undefined ? {} : { stage }),
        },
      });
    }
  },
);

test.each(['policy_context', 'policy_tokens', 'policy_bad_request'] as const)(
  '%s is terminal for a trainer, and retried by a collector whose settings were fixed',
  async (name) => {
    for (const [gateway_failures, terminal] of [
      ['nemo-rl', true],
      ['collector', false],
    ] as const) {
      const { url, farm } = await testGateway({ gateway_failures });
      startPlayer(farm, () => failed(name));
      const [, body] = await told(await post(url, episode('r1')));
      expect([gateway_failures, body]).toMatchObject([gateway_failures, { failure: { terminal } }]);
    }
  },
);

test('a judged rollout without trained turns is terminal for a trainer', async () => {
  const { url, farm } = await testGateway({ gateway_failures: 'nemo-rl' });
  startPlayer(farm, () => judged(1), 0);
  const [, body] = await told(await post(url, episode('r1')));
  expect(body).toMatchObject({
    failure: { terminal: true, failure_reason: expect.stringContaining('no_trained_turn') },
  });
});

test('a malformed episode is refused by field', async () => {
  const { url } = await testGateway();
  const { responses_create_params } = row();
  const bad: [Record<string, unknown>, number, string][] = [
    [{ episode_id: { rollout_id: 'r1' } }, 400, 'task'],
    [{ ...episode('r1'), extra: 1 }, 400, 'extra'],
    [episode('r1-a2'), 400, 'episode_id.rollout_id'],
    [episode('no way'), 400, 'episode_id.rollout_id'],
    [
      episode('r1', { responses_create_params: { input: 5 } }),
      400,
      'task.task_input.responses_create_params.input',
    ],
    [episode('r1', { base_commit: 'other' }), 400, 'task.task_input.base_commit'],
    [
      { ...episode('r1'), task: { task_id: 'flat', task_input: { responses_create_params } } },
      400,
      'task.task_id',
    ],
  ];
  for (const [body, status, field] of bad) {
    const [is, { error }] = await told(await post(url, body));
    expect([is, (error as { field?: string }).field]).toEqual([status, field]);
  }
});
