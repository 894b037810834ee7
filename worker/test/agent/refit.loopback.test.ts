/** A weight update during rollouts: nothing is sent, nothing fails, no clock runs. */

import { cumulative } from '@swefarm/policy';
import { AgentConfig, PolicyConfig, type PolicyRecord, sleep } from '@swefarm/shared';
import { type ScriptedPolicy, type ScriptedPolicyOptions, startScriptedPolicy } from '@swefarm/testkit';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { runMiniAgent } from '../../src/agent/loop.ts';
import { Endpoints } from '../../src/agent/policy/endpoints.ts';
import { watchPolicies } from '../../src/agent/policy/watch.ts';
import { completion, sendJson, startEndpoint } from './endpoint.ts';
import { bash, depsOf, echoShell, policyAt, SUBMIT, scriptedShell, scriptedTask } from './scripted.ts';

vi.setConfig({ testTimeout: 180_000 });

const TEXT = { urls: [], model: 'm', token_mode: 'text', stream: 'off' };
const POLL = { timeout: 55_000, interval: 10 };

/** A trainer whose records are in memory, and the watch of a worker that reads them every `intervalMs`. */
function openTrainer(intervalMs = 10) {
  const records = new Map<string, PolicyRecord>();
  let reads = 0;
  const endpoints = new Endpoints();
  const watch = watchPolicies({
    farm: {
      policies: {
        async get(names: readonly string[]) {
          reads++;
          return names.flatMap((name) => records.get(name) ?? []);
        },
        report: async () => new Map(),
      },
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
    announce(name: string, change: Partial<PolicyRecord>) {
      const first = { name, version: null, versions: [], endpoints: [], state: 'serving' };
      const before = records.get(name) ?? first;
      records.set(name, { ...before, ...change, changed_at: ++changes } as PolicyRecord);
    },
    /** Makes the worker read the record now, whatever its interval. */
    async refresh(name = 'default'): Promise<void> {
      (await watch.follow({ name, urls: [] }))[Symbol.dispose]();
    },
    reads: () => reads,
    async read(times: number) {
      await expect.poll(() => reads, POLL).toBeGreaterThanOrEqual(times);
    },
    /** Waits until the worker has read the last record. */
    async untilRead() {
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

type Trainer = ReturnType<typeof openTrainer>;

async function begin(
  trainer: Trainer,
  server: ScriptedPolicy,
  config: object = {},
  agent: object = {},
  shell = echoShell(),
) {
  const plain = { urls: [server.url], model: 'm', patience: 0, token_mode: 'token-in' };
  const parsed = PolicyConfig.parse({ ...plain, ...config });
  const followed = await trainer.watch.follow(parsed);
  const policy = policyAt(parsed, { followed, endpoints: trainer.endpoints });
  onTestFinished(() => {
    policy[Symbol.dispose]();
    followed[Symbol.dispose]();
  });
  return runMiniAgent(scriptedTask(AgentConfig.parse(agent)), depsOf(policy, shell));
}

test('a server that restarts with new weights gets the turn again, even without patience', async () => {
  const trainer = openTrainer();
  const server = await endpoint({ version: 'step-1', delay: { fixed_ms: 20 } });
  trainer.announce('default', { state: 'serving', version: 'step-1' });
  const playing = begin(trainer, server);
  await expect.poll(() => server.stats().requests, POLL).toBeGreaterThan(2);
  trainer.announce('default', { state: 'updating' });
  await server.setFault({ kind: 'refuse' });
  await trainer.untilRead();
  server.setVersion('step-2');
  await server.setFault();
  trainer.announce('default', { state: 'serving', version: 'step-2' });
  const end = await playing;
  expect(end.exit_status).toBe('submitted');
  const versions = end.trajectory.turns.map(({ policy_version: version }) => version.end);
  expect(versions[0]).toBe('step-1');
  expect(versions.at(-1)).toBe('step-2');
  expect(end.trajectory.contiguous).toBe(true);
  expect(trainer.endpoints.views()).toMatchObject([{ aside_seconds: 0, reason: null }]);
});

test('an update that begins and ends while the client waits for a retry names the new weights', async () => {
  const trainer = openTrainer(600_000);
  const server = await endpoint();
  trainer.announce('default', { state: 'serving', version: 'step-1' });
  await server.setFault({ kind: 'aborted', turn: 1 });
  const playing = begin(trainer, server, { patience: 60 });
  // The worker reads the record when the rollout begins to follow the policy, and again after the fault.
  await trainer.read(2);
  trainer.announce('default', { state: 'serving', version: 'step-2' });
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
    const trainer = openTrainer();
    const server = await endpoint();
    trainer.announce('default', { state });
    // The pause is longer than the time limit.
    const playing = begin(trainer, server, {}, { time_limit: 3 });
    await trainer.untilRead();
    await sleep(4_000);
    await trainer.untilRead();
    expect(server.stats().requests).toBe(0);
    trainer.announce('default', { state: 'serving' });
    const end = await playing;
    expect(end.exit_status).toBe('submitted');
  },
);

test('pausing servers get requests, and may answer them after every timeout', async () => {
  const trainer = openTrainer();
  const resumed = Promise.withResolvers<void>();
  const server = await startEndpoint(
    async (request, response, index) => {
      await resumed.promise;
      sendJson(completion(bash('echo 1')))(request, response, index);
    },
    sendJson(completion(SUBMIT)),
  );
  onTestFinished(() => server[Symbol.asyncDispose]());
  trainer.announce('default', { state: 'pausing', version: 'step-1' });
  const config = PolicyConfig.parse({ ...TEXT, urls: [server.url], request_timeout: 1, patience: 0 });
  const followed = await trainer.watch.follow(config);
  using policy = policyAt(config, { followed, endpoints: trainer.endpoints });
  const playing = runMiniAgent(scriptedTask({ time_limit: 1 }), depsOf(policy, echoShell()));
  await expect.poll(() => server.requests.length, POLL).toBe(1);
  await sleep(2_000);
  trainer.announce('default', { state: 'updating' });
  await trainer.untilRead();
  trainer.announce('default', { state: 'serving', version: 'step-2' });
  await trainer.untilRead();
  resumed.resolve();
  const end = await playing;
  expect(end.exit_status).toBe('submitted');
  expect(server.requests).toHaveLength(2);
  expect(end.trajectory.turns.map((turn) => turn.policy_version)).toEqual([
    { start: 'step-1', end: 'step-2' },
    { start: 'step-2', end: 'step-2' },
  ]);
});

test('faults of pausing servers are retried once a second, at no cost', async () => {
  const trainer = openTrainer();
  const server = await endpoint({ script: short });
  await server.setFault({ kind: 'unavailable' });
  trainer.announce('default', { state: 'pausing' });
  const playing = begin(trainer, server);
  await expect.poll(() => server.stats().requests, POLL).toBeGreaterThan(1);
  expect(server.stats().requests).toBeLessThan(6);
  await server.setFault();
  trainer.announce('default', { state: 'serving' });
  expect((await playing).exit_status).toBe('submitted');
});

test('a run with a policy name requests the model of the current version', async () => {
  const trainer = openTrainer();
  const asked: unknown[] = [];
  const server = await startEndpoint((request, response, index) => {
    if (request.path.endsWith('/chat/completions')) asked.push(request.body.model);
    if (index === 0) trainer.announce('train', { model: 'policy-v2', version: '2' });
    const answer = completion(index < 2 ? bash('sleep') : SUBMIT);
    sendJson(answer)(request, response, index);
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  trainer.announce('train', { model: 'policy-v1', version: '1', endpoints: [server.url] });
  const play = async (config: object) => {
    const parsed = PolicyConfig.parse({ ...TEXT, ...config });
    const followed = await trainer.watch.follow(parsed);
    using policy = policyAt(parsed, { followed, endpoints: trainer.endpoints });
    const shell = echoShell();
    const run: typeof shell.run = async (...given) => {
      await trainer.untilRead();
      return await shell.run(...given);
    };
    await runMiniAgent(scriptedTask(), depsOf(policy, { ...shell, run }));
  };
  await play({ name: 'train', urls: [] });
  expect(asked).toEqual(['policy-v1', 'policy-v2', 'policy-v2']);
  await play({ urls: [server.url] });
  expect(asked.slice(3)).toEqual(['m']);
});

describe('an answer that an update interrupts', () => {
  test.each(['aborted', 'cut', 'server_error', 'unavailable', 'model_unknown'] as const)(
    '%s',
    async (kind) => {
      // The worker reads so rarely that the interrupted answer is the first sign of the update.
      const trainer = openTrainer(1_000_000);
      const server = await endpoint({ faults: [{ kind, turn: 2, times: 1 }], script: short });
      trainer.announce('default', { state: 'serving', version: 'step-1' });
      const shell = scriptedShell((command) => {
        if (command === 'echo 1') trainer.announce('default', { state: 'updating' });
        return { output: `${command.slice('echo '.length)}\n` };
      });
      const playing = begin(trainer, server, {}, {}, shell);
      await expect.poll(() => server.stats().requests, POLL).toBe(3);
      trainer.announce('default', { state: 'serving', version: 'step-2' });
      await trainer.refresh();
      const end = await playing;
      expect(end.exit_status).toBe('submitted');
      expect(end.trajectory.turns).toHaveLength(5);
      expect(trainer.endpoints.views()).toMatchObject([{ reason: null }]);
    },
  );
  test('continues with the new weights, and its spans name the weights of each part', async () => {
    const trainer = openTrainer(1_000_000);
    const long = { conversations: [{ variants: [[{ command: 'echo 0' }, ...turns(2)]] }] };
    const plain = await begin(trainer, await endpoint({ script: long }));
    const server = await endpoint({ faults: [{ kind: 'aborted', turn: 1, times: 1 }], script: long });
    trainer.announce('default', { state: 'serving', version: 'step-1' });
    let reads = Infinity;
    const shell = scriptedShell((command) => {
      if (server.stats().requests === 1) {
        trainer.announce('default', { state: 'updating' });
        reads = trainer.reads();
      }
      return { output: `${command.slice('echo '.length)}\n` };
    });
    const playing = begin(trainer, server, {}, {}, shell);
    // The worker reads the record after the interruption. Weights announced before that read may have sampled the last tokens.
    await expect.poll(() => trainer.reads() > reads, POLL).toBe(true);
    trainer.announce('default', { state: 'serving', version: 'step-2' });
    await trainer.refresh();
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
    const trainer = openTrainer();
    const server = await endpoint({ faults: [{ kind: 'aborted', turn: 2 }] });
    await expect(begin(trainer, server)).rejects.toMatchObject({ failureClass: 'policy_server_error' });
    expect(trainer.endpoints.views()).toMatchObject([{ reason: expect.stringContaining('abort') }]);
  });
});

test('endpoints that the trainer replaces are left for the new ones', async () => {
  const trainer = openTrainer();
  const [before, after] = [await endpoint({ delay: { fixed_ms: 20 } }), await endpoint()];
  trainer.announce('train', { endpoints: [before.url] });
  const playing = begin(trainer, before, { name: 'train', urls: [] });
  await expect.poll(() => before.stats().requests, POLL).toBeGreaterThan(1);
  trainer.announce('train', { endpoints: [after.url], state: 'serving' });
  const end = await playing;
  expect(end.exit_status).toBe('submitted');
  expect(after.stats().requests).toBeGreaterThan(0);
});

test('an answer continues at the new endpoints if its endpoint is replaced meanwhile', async () => {
  const trainer = openTrainer(1_000_000);
  const before = await endpoint({ faults: [{ kind: 'aborted', turn: 2, times: 1 }], script: short });
  const after = await endpoint({ script: short });
  const plain = await begin(openTrainer(), await endpoint({ script: short }));
  trainer.announce('train', { endpoints: [before.url], version: 'step-1' });
  const shell = scriptedShell((command) => {
    if (command === 'echo 1') trainer.announce('train', { state: 'updating' });
    return { output: `${command.slice('echo '.length)}\n` };
  });
  const playing = begin(trainer, before, { name: 'train', urls: [] }, {}, shell);
  await expect.poll(() => before.stats().requests, POLL).toBe(3);
  trainer.announce('train', { endpoints: [after.url], version: 'step-2', state: 'serving' });
  await trainer.refresh('train');
  const { trajectory } = await playing;
  expect(trajectory.turns.map(({ endpoint }) => endpoint === before.url)).toEqual([
    ...[true, true, false],
    ...[false, false],
  ]);
  const [broken, rest] = trajectory.turns[2]?.spans ?? [];
  // If the worker reads the new record before the stream breaks, it cannot know which weights sampled the tokens of the stream.
  expect(['step-1', null]).toContain(broken?.version);
  expect(rest?.version).toBe('step-2');
  expect(trajectory.turns.map(({ tokens }) => tokens?.generation)).toEqual(
    plain.trajectory.turns.map(({ tokens }) => tokens?.generation),
  );
  expect(before.stats().requests).toBe(3);
});

test('a run that shares no endpoint with the default policy does not follow it', async () => {
  const trainer = openTrainer();
  const server = await endpoint();
  trainer.announce('default', { state: 'updating', endpoints: ['http://127.0.0.1:9/v1'] });
  expect((await begin(trainer, server)).exit_status).toBe('submitted');
});

test('without a trainer the header names the version, without a header the list of models', async () => {
  const trainer = openTrainer();
  const played = await begin(trainer, await endpoint({ version: 'abc' }));
  expect(played.trajectory.turns[0]?.policy_version).toEqual({ start: 'abc', end: 'abc' });
  const silent = await begin(trainer, await endpoint(), { version: 'of the run' });
  expect(silent.trajectory.turns[0]?.policy_version).toEqual({ start: 'of the run', end: 'of the run' });
});
