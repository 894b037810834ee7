/** Rows with pictures over HTTP are refused with a remedy, unless the run drops pictures. */
import { expect, test } from 'vitest';
import { testGateway } from './gateway.ts';
import { INSTANCE, post, RUN, row } from './gym.ts';

const image_assets = JSON.stringify({ problem_statement: ['https://x.example/a.png'] });

test('a run without its pictures is refused, unless it drops them', async () => {
  const { url, farm } = await testGateway();
  const submit = (agent: object) =>
    post(url, { instances: [{ ...INSTANCE, image_assets }], run: { ...RUN, agent } }, { path: '/v1/runs' });
  const refused = await submit({});
  expect([refused.status, await refused.json()]).toMatchObject([
    422,
    {
      error: {
        field: 'run',
        message: expect.stringMatching(/1 of 1 instances show pictures[\s\S]*--pictures drop/),
      },
    },
  ]);
  const taken = await submit({ pictures: 'drop' });
  expect(taken.status).toBe(201);
  const { run_id } = (await taken.json()) as { run_id: string };
  const stored = await farm.runs.getInstance(run_id, String(INSTANCE.instance_id));
  expect(stored?.pictures).toBeUndefined();
  expect(stored?.problem_statement).toContain('https://x.example/a.png');
});

test('a call of NeMo Gym without its pictures is refused', async () => {
  const { url } = await testGateway();
  const refused = await post(url, { ...row(), image_assets });
  expect([refused.status, await refused.json()]).toMatchObject([
    422,
    { error: { code: 'bad_settings', message: expect.stringContaining('1 of 1 instances show pictures') } },
  ]);
});
