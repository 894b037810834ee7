import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, onTestFinished, test } from 'vitest';
import { bearer, testGateway } from './gateway.ts';
import { INSTANCE, post, RUN, row } from './gym.ts';

const WORKER = {
  ...{ worker: 'w1', node: 'n1', runtime: 'rootfs', slots: 4, active: 1, started_at: 1, paused: null },
  metrics: '10.0.0.7:9400',
};

test('/metrics and /sd need the token; without workers only the gateway is listed', async () => {
  const { url } = await testGateway();
  for (const path of ['/metrics', '/sd']) expect((await fetch(`${url}${path}`)).status).toBe(401);
  const reply = await fetch(`${url}/sd`, { headers: bearer() });
  expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
  expect(await reply.json()).toEqual([{ targets: [new URL(url).host], labels: { role: 'gateway' } }]);
});

test('/sd and its file list the workers that serve metrics', async () => {
  const path = join(await testFolder(), 'targets.json');
  const { url, farm, gateway } = await testGateway({ file_sd: path });
  await expect.poll(() => readFile(path, 'utf8').catch(() => ''), { timeout: 120_000 }).toContain('gateway');
  await farm.registry.beat(WORKER);
  await farm.registry.beat({ ...WORKER, worker: 'w2', metrics: null });
  const groups = await (await fetch(`${url}/sd`, { headers: bearer() })).json();
  expect(groups).toEqual([
    { targets: [new URL(url).host], labels: { role: 'gateway' } },
    { targets: ['10.0.0.7:9400'], labels: { role: 'worker', node: 'n1', runtime: 'rootfs' } },
  ]);
  await expect
    .poll(
      async () => {
        await farm.registry.beat(WORKER);
        return JSON.parse(await readFile(path, 'utf8'));
      },
      { timeout: 120_000 },
    )
    .toEqual([
      { targets: [`${gateway.host}:${gateway.port}`], labels: { role: 'gateway' } },
      { targets: ['10.0.0.7:9400'], labels: { role: 'worker', node: 'n1', runtime: 'rootfs' } },
    ]);
});

test('/metrics has outcomes from zero, farm, policies and the process', async () => {
  const { url, farm } = await testGateway();
  await farm.registry.beat(WORKER);
  await farm.policies.set('default', { version: 'v1', state: 'updating' });
  const view = { load: 2, reason: null };
  await farm.policies.report('w1', [
    { ...view, url: 'http://user:secret@gpu1:8000/v1', aside_seconds: 0 },
    { ...view, url: 'http://gpu2:8000/v1', aside_seconds: 9 },
  ]);
  const load = { kv_usage: 0.5, running: 3, waiting: 1, preemptions: 7 };
  await farm.admissions.setState('default', {
    ...{ limit: 1.5, threshold: null, wait_polls: 0, queue_polls: 0, refused: 0, reason: null, at: 1 },
    endpoints: [{ endpoint: 'http://gpu1:8000/v1', ...load }],
  });
  const members = ['a', 'b', 'c'].map((rollout) => ({ rollout, plays: rollout !== 'c', order: 1 }));
  await farm.admissions.exchange('default', members, 0);
  const reply = await fetch(`${url}/metrics`, { headers: bearer() });
  expect(reply.headers.get('content-type')).toContain('version=0.0.4');
  const text = await reply.text();
  for (const line of [
    'swefarm_rollouts_total{kind="training",outcome="judged"} 0',
    'swefarm_redis_up 1',
    'swefarm_workers{state="claiming"} 1',
    'swefarm_policy_state{policy="default",state="updating"} 1',
    'swefarm_policy_state{policy="default",state="serving"} 0',
    'swefarm_policy_endpoint_up{endpoint="http://gpu1:8000/v1"} 1',
    'swefarm_policy_endpoint_up{endpoint="http://gpu2:8000/v1"} 0',
    'swefarm_policy_endpoint_rollouts{endpoint="http://gpu1:8000/v1"} 2',
    'swefarm_policy_endpoint_kv_usage{endpoint="http://gpu1:8000/v1"} 0.5',
    'swefarm_policy_endpoint_requests{endpoint="http://gpu1:8000/v1",state="waiting"} 1',
    'swefarm_policy_endpoint_preemptions_total{endpoint="http://gpu1:8000/v1"} 7',
    'swefarm_admission_limit{policy="default"} 1',
    'swefarm_admission_rollouts{policy="default",state="playing"} 1',
    'swefarm_admission_rollouts{policy="default",state="suspended"} 1',
    'swefarm_admission_rollouts{policy="default",state="waiting"} 1',
  ])
    expect(text.split('\n')).toContain(line);
  expect(text).toContain('process_cpu_seconds_total');
  expect(text).not.toContain('secret@');
});

test('with a file of prices, runs and calls have prices, and /metrics has their costs', async () => {
  const prices = join(await testFolder(), 'prices.yaml');
  await writeFile(prices, 'm: {prompt: 1000000, completion: 0}\n');
  const { url, farm } = await testGateway({ prices });
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const submitted = await post(url, { instances: [INSTANCE], run: RUN }, { path: '/v1/runs' });
  const { run_id } = (await submitted.json()) as { run_id: string };
  post(url, row(), { signal: ended.signal }).catch(() => undefined);
  await expect
    .poll(async () => (await farm.runs.list()).map(({ open, policy }) => [open, policy?.price]), {
      timeout: 30_000,
    })
    .toEqual(
      expect.arrayContaining([
        [false, { prompt: 1e6, completion: 0 }],
        [true, { prompt: 1e6, completion: 0 }],
      ]),
    );
  const record = await farm.runs.get(run_id);
  const [rollout = ''] = await farm.groups.open(run_id);
  if (record) await commitRollout(farm, record, rollout, { tokens: { prompt: 3, completion: 5 } });
  const text = await (await fetch(`${url}/metrics`, { headers: bearer() })).text();
  expect(text.split('\n')).toContain('swefarm_cost_dollars_total{kind="collection",model="m"} 3');
  expect(text.split('\n')).toContain('swefarm_priced_resolved_total{kind="collection",model="m"} 1');
});

test('an unreadable file of prices prevents the start of the gateway', async () => {
  const prices = join(await testFolder(), 'prices.yaml');
  await writeFile(prices, 'm: {prompt: cheap}\n');
  await expect(testGateway({ prices })).rejects.toThrow(/m\.prompt.*US dollars for a million tokens/);
});
