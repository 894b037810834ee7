/** A weight update during rollouts: nothing is sent, nothing fails, no clock runs. */

import { closePolicyConnections, cumulative, NO_LIMITS } from '@swefarm/policy';
import { AgentConfig, PolicyConfig, type PolicyRecord } from '@swefarm/shared';
import { type ScriptedPolicy, type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { openEndpoints } from '../../src/agent/policy/endpoints.ts';
import { openPolicy } from '../../src/agent/policy/policy.ts';
import { watchPolicies } from '../../src/agent/policy/watch.ts';
import { depsOf, echoShell, scriptedShell, scriptedTask } from './scripted.ts';

afterAll(closePolicyConnections);
vi.setConfig({ testTimeout: 180_000 });

const POLL = { timeout: 55_000, interval: 10 };

/** A trainer whose record is in memory, and the watch of a worker that reads it often. */
function trainer(intervalMs = 10) {
  const records = new Map<string, PolicyRecord>();
  let reads = 0;
  const endpoints = openEndpoints();
  const watch = watchPolicies({
    farm: {
      policies: {
        async get(names: readonly string[]) {
          reads++;
          return names.flatMap((name) => records.get(name) ?? []);
        },
        report: async () => new Map(),
        reports: async () => new Map(),
      },
      registry: { list: async () => [] },
    } as unknown as Parameters<typeof watchPolicies>[0]['farm'],
    worker: 'w',
    endpoints,
    log: { warn: () => undefined },
    intervalMs,
  });
  onTestFinished(() => watch[Symbol.dispose]());
  let changes = 0;
  return {
    watch,
    endpoints,
    say(name: string, change: Partial<PolicyRecord>) {
      const before = records.get(name) ?? {
        name,
        version: null,
        versions: [],
        endpoints: [],
        state: 'serving',
      };
      records.set(name, { ...before, ...change, changed_at: ++changes } as PolicyRecord);
    },
    /** Makes the worker read the record now, whatever its interval. */
    async tell(name = 'default'): Promise<void> {
      (await watch.follow({ name, urls: [] }))[Symbol.dispose]();
    },
    reads: () => reads,
    async read(times: number) {
      await expect.poll(() => reads, POLL).toBeGreaterThanOrEqual(times);
    },
    /** Waits until the worker has read the last record. */
    async heard() {
      const from = reads;
      await expect.poll(() => reads, POLL).toBeGreaterThan(from + 3);
    },
  };
}

const turns = (count: number) => [
  ...Array.from({ length: count }, (_, turn) => ({ command: `echo ${turn}` })),
  { submit: true as const },
];

const short = { conversations: [{ variants: [turns(4)] }] };

async function endpoint(options: Partial<ScriptedPolicyOptions> = {}): Promise<ScriptedPolicy> {
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [turns(30)] }] },
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

type Trainer = ReturnType<typeof trainer>;

async function begin(
  say: Trainer,
  server: ScriptedPolicy,
  config: object = {},
  agent: object = {},
  shell = echoShell(),
) {
  const parsed = PolicyConfig.parse({
    urls: [server.url],
    model: 'm',
    patience: 0,
    token_mode: 'token-in',
    ...config,
  });
  const followed = await say.watch.follow(parsed);
  const policy = openPolicy(parsed, {
    apiKey: null,
    rolloutId: 'run.a__b-1.0',
    attempt: 1,
    limits: NO_LIMITS,
    followed,
    endpoints: say.endpoints,
    log: { warn: () => undefined },
  });
  onTestFinished(() => {
    policy[Symbol.dispose]();
    followed[Symbol.dispose]();
  });
  return runMiniAgent(scriptedTask(AgentConfig.parse(agent)), depsOf(policy, shell));
}

test('a server that restarts with new weights gets the turn again, even without patience', async () => {
  const say = trainer();
  const server = await endpoint({ version: 'step-1', delay: { fixed_ms: 20 } });
  say.say('default', { state: 'serving', version: 'step-1' });
  const playing = begin(say, server);
  await expect.poll(() => server.stats().requests, POLL).toBeGreaterThan(2);
  say.say('default', { state: 'updating' });
  await server.setFault({ kind: 'refuse' });
  await say.heard();
  server.setVersion('step-2');
  await server.setFault();
  say.say('default', { state: 'serving', version: 'step-2' });
  const end = await playing;
  expect(end.exit_status).toBe('submitted');
  const versions = end.trajectory.turns.map(({ policy_version: version }) => version.end);
  expect(versions[0]).toBe('step-1');
  expect(versions.at(-1)).toBe('step-2');
  expect(end.trajectory.contiguous).toBe(true);
  expect(say.endpoints.views()).toMatchObject([{ aside_seconds: 0, reason: null }]);
});

test('an update that begins and ends while the client waits for a retry names the new weights', async () => {
  const say = trainer(600_000);
  const server = await endpoint();
  say.say('default', { state: 'serving', version: 'step-1' });
  await server.setFault({ kind: 'aborted', turn: 1 });
  const playing = begin(say, server, { patience: 60 });
  // Read once when the rollout began to follow, once for the fault.
  await say.read(2);
  say.say('default', { state: 'serving', version: 'step-2' });
  await server.setFault();
  const { trajectory } = await playing;
  const [first, second, ...later] = trajectory.turns.map(({ policy_version: version }) => version);
  expect(first).toEqual({ start: 'step-1', end: 'step-1' });
  expect(second?.end).toBe('step-2');
  expect(new Set(later.map(({ start }) => start))).toEqual(new Set(['step-2']));
});

test.each(['updating', 'asleep'] as const)(
  'while the policy is %s nothing is sent and no clock runs',
  async (state) => {
    const say = trainer();
    const server = await endpoint();
    say.say('default', { state });
    // Time enough for the conversation, but not for the pause too.
    const playing = begin(say, server, {}, { time_limit: 20 });
    await say.heard();
    await say.heard();
    expect(server.stats().requests).toBe(0);
    say.say('default', { state: 'serving' });
    const end = await playing;
    expect(end.exit_status).toBe('submitted');
  },
);

describe('an answer that an update interrupts', () => {
  test.each(['aborted', 'cut', 'server_error', 'unavailable', 'model_unknown'] as const)(
    '%s',
    async (kind) => {
      // The worker reads so rarely that the interrupted answer is the first sign of the update.
      const say = trainer(1_000_000);
      const server = await endpoint({ faults: [{ kind, turn: 2, times: 1 }], script: short });
      say.say('default', { state: 'serving', version: 'step-1' });
      const shell = scriptedShell((command) => {
        if (command === 'echo 1') say.say('default', { state: 'updating' });
        return { output: `${command.slice('echo '.length)}\n` };
      });
      const playing = begin(say, server, {}, {}, shell);
      await expect.poll(() => server.stats().requests, POLL).toBe(3);
      say.say('default', { state: 'serving', version: 'step-2' });
      await say.tell();
      const end = await playing;
      expect(end.exit_status).toBe('submitted');
      expect(end.trajectory.turns).toHaveLength(5);
      expect(say.endpoints.views()).toMatchObject([{ reason: null }]);
    },
  );
  test('continues with the new weights, and its spans name the weights of each part', async () => {
    const say = trainer(1_000_000);
    const long = { conversations: [{ variants: [[{ command: 'echo 0' }, ...turns(2)]] }] };
    const plain = await begin(say, await endpoint({ script: long }));
    const server = await endpoint({ faults: [{ kind: 'aborted', turn: 1, times: 1 }], script: long });
    say.say('default', { state: 'serving', version: 'step-1' });
    let reads = Infinity;
    const shell = scriptedShell((command) => {
      if (server.stats().requests === 1) {
        say.say('default', { state: 'updating' });
        reads = say.reads();
      }
      return { output: `${command.slice('echo '.length)}\n` };
    });
    const playing = begin(say, server, {}, {}, shell);
    // The worker reads the record after the interruption. Weights announced before it may have sampled the last tokens.
    await expect.poll(() => say.reads() > reads, POLL).toBe(true);
    say.say('default', { state: 'serving', version: 'step-2' });
    await say.tell();
    const { trajectory } = await playing;
    const whole = (end: { trajectory: typeof trajectory }) =>
      [...cumulative(end.trajectory.turns.map(({ tokens }) => tokens))].map(({ prompt, generation }) => [
        Array.from(prompt),
        Array.from(generation),
      ]);
    expect(whole({ trajectory })).toEqual(whole(plain));
    const [before, broken, after] = trajectory.turns;
    expect(before?.spans).toMatchObject([{ version: 'step-1' }]);
    expect(broken?.policy_version).toEqual({ start: 'step-1', end: 'step-2' });
    expect(broken?.spans).toMatchObject([{ version: 'step-1' }, { version: 'step-2' }]);
    expect(broken?.spans?.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(
      broken?.tokens?.generation.length,
    );
    expect(after?.spans).toMatchObject([{ version: 'step-2' }]);
  });
  test('without an announcement is a fault as any other', async () => {
    const say = trainer();
    const server = await endpoint({ faults: [{ kind: 'aborted', turn: 2 }] });
    await expect(begin(say, server)).rejects.toMatchObject({ failureClass: 'policy_server_error' });
    expect(say.endpoints.views()).toMatchObject([{ reason: expect.stringContaining('abort') }]);
  });
});

test('endpoints that the trainer replaces are left for the new ones', async () => {
  const say = trainer();
  const [before, after] = [await endpoint({ delay: { fixed_ms: 20 } }), await endpoint()];
  say.say('train', { endpoints: [before.url] });
  const playing = begin(say, before, { name: 'train', urls: [] });
  await expect.poll(() => before.stats().requests, POLL).toBeGreaterThan(1);
  say.say('train', { endpoints: [after.url], state: 'serving' });
  const end = await playing;
  expect(end.exit_status).toBe('submitted');
  expect(after.stats().requests).toBeGreaterThan(0);
});

test('an answer continues at the new endpoints if its endpoint is replaced meanwhile', async () => {
  const say = trainer(1_000_000);
  const before = await endpoint({ faults: [{ kind: 'aborted', turn: 2, times: 1 }], script: short });
  const after = await endpoint({ script: short });
  const plain = await begin(trainer(), await endpoint({ script: short }));
  say.say('train', { endpoints: [before.url], version: 'step-1' });
  const shell = scriptedShell((command) => {
    if (command === 'echo 1') say.say('train', { state: 'updating' });
    return { output: `${command.slice('echo '.length)}\n` };
  });
  const playing = begin(say, before, { name: 'train', urls: [] }, {}, shell);
  await expect.poll(() => before.stats().requests, POLL).toBe(3);
  say.say('train', { endpoints: [after.url], version: 'step-2', state: 'serving' });
  await say.tell('train');
  const { trajectory } = await playing;
  expect(trajectory.turns.map(({ endpoint }) => endpoint === before.url)).toEqual([
    ...[true, true, false],
    ...[false, false],
  ]);
  const [broken, rest] = trajectory.turns[2]?.spans ?? [];
  // If the worker reads the new record before the stream breaks, it cannot know which weights sampled its tokens.
  expect(['step-1', null]).toContain(broken?.version);
  expect(rest?.version).toBe('step-2');
  expect(trajectory.turns.map(({ tokens }) => tokens?.generation)).toEqual(
    plain.trajectory.turns.map(({ tokens }) => tokens?.generation),
  );
  expect(before.stats().requests).toBe(3);
});

test('a run that shares no endpoint with the default policy does not follow it', async () => {
  const say = trainer();
  const server = await endpoint();
  say.say('default', { state: 'updating', endpoints: ['http://127.0.0.1:9/v1'] });
  expect((await begin(say, server)).exit_status).toBe('submitted');
});

test('without a trainer the header names the version, without a header the list of models', async () => {
  const say = trainer();
  const told = await begin(say, await endpoint({ version: 'abc' }));
  expect(told.trajectory.turns[0]?.policy_version).toEqual({ start: 'abc', end: 'abc' });
  const silent = await begin(say, await endpoint(), { version: 'of the run' });
  expect(silent.trajectory.turns[0]?.policy_version).toEqual({ start: 'of the run', end: 'of the run' });
});
