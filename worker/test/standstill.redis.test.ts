/** A trainer that never serves again: no rollout waits longer than the limit, and all continue when it serves. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AgentConfig, type Instance, newId, PolicyConfig } from '@swefarm/shared';
import { bareRun, type ScriptedPolicy, startScriptedPolicy } from '@swefarm/testkit';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startHostWorker, treeInstance, ungraded, useHost } from './hostworker.ts';
import { BY, claimBy, openScene } from './maintenance/farm.ts';

const POLL = { timeout: 60_000, interval: 50 };
vi.setConfig({ testTimeout: 120_000 });

const host = useHost('standstill');
let policy: ScriptedPolicy;
beforeAll(async () => {
  const talk = [...Array.from({ length: 20 }, () => ({ command: 'pwd' })), { submit: true as const }];
  policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [talk] }] },
    delay: { fixed_ms: 50 },
  });
});
afterAll(() => policy[Symbol.asyncDispose]());

/** A farm with a run that follows policy `train`, a run without a policy, and workers of one slot. */
async function farmOf() {
  const prefix = `{s-${newId()}}`;
  const { farm } = await openScene(prefix);
  onTestFinished(() => farm[Symbol.asyncDispose]());
  const begin = async (
    change: Partial<ReturnType<typeof bareRun>>,
    of: Partial<Instance> = {},
  ): Promise<string> => {
    const run = bareRun({ group_size: 1, ...ungraded(), ...change });
    await farm.runs.create(run, [{ ...treeInstance(host.folder), ...of }]);
    const [id = ''] = await farm.groups.rollouts(run.run_id);
    await farm.jobs.enqueue(run, [id]);
    return id;
  };
  await farm.policies.set('train', { version: 'step-1', endpoints: [policy.url], state: 'serving' });
  const work = (limitMs: number, intervalMs = 50, hostRewards = false) =>
    startHostWorker({ farm, prefix, ...host, slots: 1, limitMs, hostRewards, intervalMs });
  return {
    farm,
    begin,
    work,
    followed: () =>
      begin({ policy: PolicyConfig.parse({ name: 'train', urls: [], model: 'scripted', patience: 0 }) }),
    other: () => begin({ agent: AgentConfig.parse({ type: 'noop' }) }),
    journal: async (id: string) => (await farm.journal.read(id)).map(({ end }) => end),
    result: (id: string) => farm.results.get(id),
    delayed: async () => (await farm.queue().getJobCounts('delayed')).delayed,
  };
}

test('a rollout whose policy updates beyond the limit is handed back at no cost and run later', async () => {
  const at = await farmOf();
  const worker = await at.work(1_500);
  const waits = await at.followed();
  const before = policy.stats().answered;
  await expect.poll(() => policy.stats().answered, POLL).toBeGreaterThan(before + 1);
  await at.farm.policies.set('train', { state: 'updating' });
  // The worker has one slot, so this rollout runs only after the first one is handed back.
  const beside = await at.other();
  await expect.poll(() => at.result(beside), POLL).toMatchObject({ attempt: 1 });
  await expect.poll(at.delayed, POLL).toBe(1);
  await expect.poll(worker.sandboxes, POLL).toBe(0);
  const cause = expect.stringContaining('has been updating for');
  const drained = { class: 'drained', stage: null, cause };
  await expect.poll(() => at.journal(waits), POLL).toEqual([expect.objectContaining(drained)]);
  expect(await at.result(waits)).toBeNull();

  await at.farm.policies.set('train', { version: 'step-2', state: 'serving' });
  const judged = { outcome: 'judged', attempt: 2, exit_status: 'submitted', failure: null };
  await expect.poll(() => at.result(waits), POLL).toMatchObject({ ...judged, policy_version: 'step-2' });
  // An attempt ends shortly after its result was committed.
  await expect
    .poll(async () => (await at.journal(waits)).map((end) => end?.class), POLL)
    .toEqual(['drained', 'done']);
});

test('a worker that starts later claims nothing of a policy asleep beyond the limit', async () => {
  const at = await farmOf();
  await at.farm.policies.set('train', { state: 'asleep' });
  const [record] = await at.farm.policies.get(['train']);
  await expect
    .poll(async () => (await at.farm.clock.ask()) - (record?.changed_at ?? 0), POLL)
    .toBeGreaterThan(500);
  const waits = await at.followed();
  const beside = await at.other();
  const cancelled = await at.followed();
  await at.farm.cancel.cancelRollouts([cancelled], 'cancelled');
  await at.work(500);
  await expect.poll(() => at.result(beside), POLL).toMatchObject({ attempt: 1 });
  await expect.poll(() => at.result(cancelled), POLL).toMatchObject({ outcome: 'cancelled' });
  await expect.poll(at.delayed, POLL).toBe(1);
  expect(await at.journal(waits)).toEqual([]);
});

test('during a short update the same attempt continues in its sandbox', async () => {
  const at = await farmOf();
  await at.work(3_600_000);
  const waits = await at.followed();
  const before = policy.stats().answered;
  await expect.poll(() => policy.stats().answered, POLL).toBeGreaterThan(before + 1);
  await at.farm.policies.set('train', { state: 'updating' });
  const [record] = await at.farm.policies.get(['train']);
  await expect
    .poll(async () => (await at.farm.clock.ask()) - (record?.changed_at ?? 0), POLL)
    .toBeGreaterThan(2_500);
  expect(await at.journal(waits)).toEqual([null]);
  await at.farm.policies.set('train', { state: 'serving' });
  await expect.poll(() => at.result(waits), POLL).toMatchObject({ outcome: 'judged', attempt: 1 });
});

test('resumable work is claimed for its evaluation while the policy is paused', async () => {
  const at = await farmOf();
  const onlyResumable = { over: null, onlyResumable: true };
  const id = await at.followed();
  expect(await at.farm.journal.claim(id, BY, onlyResumable)).toEqual({ status: 'paused' });
  const { claim } = await claimBy(at, id);
  await at.farm.journal.end(id, claim, { stage: null, class: 'drained', cause: null });
  expect(await at.farm.journal.claim(id, BY, onlyResumable)).toEqual({ status: 'paused' });
  const again = await claimBy(at, id);
  await at.farm.journal.end(id, again.claim, { stage: null, class: 'drained', cause: null, kept: 'redis:x' });
  expect(await at.farm.journal.claim(id, BY, onlyResumable)).toMatchObject({ status: 'claimed', attempt: 3 });
});

describe('weights that become too old after the agent has ended', () => {
  const stale = { outcome: 'cancelled', reward: null, reward_row: 'stale', policy_version_first: 'w1' };
  const own = async (farm: Awaited<ReturnType<typeof farmOf>>['farm'], talk: object[]) => {
    const server = await startScriptedPolicy({
      script: { conversations: [{ variants: [[...talk, { submit: true }]] }] } as never,
      delay: { fixed_ms: 50 },
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    await farm.policies.set('own', { version: 'w1', endpoints: [server.url], state: 'serving' });
    const policy = PolicyConfig.parse({ name: 'own', urls: [], model: 'scripted', patience: 0 });
    return { server, run: { max_staleness: 0, policy } };
  };

  test('a rollout is cancelled as stale during its evaluation', async () => {
    const at = await farmOf();
    await at.work(3_600_000);
    const { run } = await own(at.farm, [{ command: 'echo x > new.txt' }]);
    const marker = join(host.folder, newId());
    const id = await at.begin(
      { ...run, evaluation: { ...bareRun().evaluation, enabled: true } },
      { eval_script: `#!/bin/bash\ntouch ${marker}\nsleep 600\n` },
    );
    await expect.poll(() => existsSync(marker), POLL).toBe(true);
    await at.farm.policies.set('own', { version: 'w2' });
    await expect.poll(() => at.result(id), POLL).toMatchObject(stale);
  });

  test('a rollout is cancelled as stale before its commit, even if the worker missed the update', async () => {
    const at = await farmOf();
    // The worker reads the policy when a rollout begins, and never again.
    await at.work(3_600_000, 1_000_000);
    const { server, run } = await own(
      at.farm,
      Array.from({ length: 20 }, () => ({ command: 'pwd' })),
    );
    const id = await at.begin(run);
    await expect.poll(() => server.stats().answered, POLL).toBeGreaterThan(1);
    await at.farm.policies.set('own', { version: 'w2' });
    await expect.poll(() => at.result(id), POLL).toMatchObject(stale);
    expect(server.stats().answered).toBe(21);
  });
});

test.each([
  ['training', { outcome: 'judged', reward: null, resolved: false, reward_row: 'policy_time' }],
  ['validation', { outcome: 'judged', reward: 0, resolved: false, reward_row: 'unresolved' }],
] as const)('a model that thinks past the time limit of a %s run is judged once', async (kind, result) => {
  const at = await farmOf();
  await at.work(3_600_000, 50, true);
  const talk = [{ command: 'echo x > new.txt' }, { think: 'hm '.repeat(50), command: 'pwd', repeat: 1000 }];
  const script = { conversations: [{ variants: [talk] }] };
  const server = await startScriptedPolicy({ script, delay: { fixed_ms: 700 } });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const id = await at.begin({
    kind,
    policy: PolicyConfig.parse({ urls: [server.url], model: 'm', token_mode: 'token-in' }),
    agent: AgentConfig.parse({ time_limit: 4 }),
    evaluation: { ...bareRun().evaluation, enabled: true },
    reward: { ...bareRun().reward, host: true },
  });
  await expect
    .poll(() => at.result(id), POLL)
    .toMatchObject({ ...result, exit_status: 'time_limit', attempt: 1 });
  expect((await at.result(id))?.facts).toMatchObject({
    ...{ evaluation: 'completed', policy_pace: null, training: kind === 'training' },
  });
});
