import { Instance } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { testGateway } from './gateway.ts';
import { post } from './gym.ts';

const known = Instance.parse({
  instance_id: 'a__b-1',
  repo: 'a/b',
  base_commit: 'c0ffee',
  problem_statement: 'It breaks.',
  patch: '',
  FAIL_TO_PASS: ['t::one'],
  PASS_TO_PASS: [],
  family: 'custom',
  image: 'x:1',
});

test("an id opens a session on the dataset's instance; an unknown id is refused with a remedy", async () => {
  const { url, farm } = await testGateway({}, {}, (own) => own, [known]);
  const path = '/v1/sessions';
  const opened = await post(url, { request_id: 'r1', instance_id: 'a__b-1' }, { path });
  expect(opened.status).toBe(200);
  const { session_id, rollout_id } = (await opened.json()) as Record<string, string>;
  expect(rollout_id).toContain('a__b-1');
  expect(await farm.runs.getInstance(String(session_id), 'a__b-1')).toMatchObject({
    problem_statement: 'It breaks.',
  });
  const missing = await post(url, { request_id: 'r2', instance_id: 'a__b-2' }, { path });
  expect([missing.status, await missing.json()]).toMatchObject([
    404,
    {
      error: {
        code: 'instance_unknown',
        field: 'instance_id',
        message: expect.stringMatching(/send the whole row/),
      },
    },
  ]);
});
