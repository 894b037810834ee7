/** Answers to `/run` of a real farm, over scripted policies, by the rules of the trainer that consumes them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildExamples, startCommand, startRedis, startScriptedPolicy } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Consumed, consume } from './nemorl.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const TOKEN = 'the-token-of-this-farm';
const CALLERS = `
callers:
  - {name: echo, entry: echo, token_env: T, failures: nemo-rl, run: {policy: {model: m, token_mode: echo}}}
  - {name: sync, entry: sync, token_env: T, failures: nemo-rl-sync, run: {policy: {model: m, token_mode: echo}}}
  - {name: text, entry: text, token_env: T, failures: collector, run: {policy: {model: m, token_mode: text, extra_body: {return_token_ids: true, logprobs: true}}}}
  - {name: strict, entry: strict, token_env: T, failures: nemo-rl, run: {policy: {model: m, token_mode: text}}}
`;

const stack = new AsyncDisposableStack();
let row: Record<string, unknown>;
let url: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-gym-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const redis = stack.use(await startRedis());
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  row = { ...built.rows[0] };
  const callers = join(folder, 'callers.yaml');
  await writeFile(callers, CALLERS);
  const env = {
    T: TOKEN,
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  };
  const worker = startCommand('swefarm-worker', ['run', '--runtime', 'rootfs', '--concurrency', '4'], env);
  const serve = startCommand('swefarm', ['serve', '--port', '0', '--gateway-callers', callers], env);
  for (const one of [worker, serve]) {
    stack.defer(async () => {
      one.kill('SIGTERM');
      await one.exit;
    });
  }
  await Promise.all([worker.until(/"msg":"ready"/), serve.until(/"port":\d+/)]);
  url = (JSON.parse(serve.stdout().split('\n')[0] ?? '{}') as { url: string }).url;
});
afterAll(() => stack.disposeAsync());

type Policy = Omit<Parameters<typeof startScriptedPolicy>[0], 'script'> & { think?: boolean };

async function rollout(entry: string, policy: Policy): Promise<Consumed & { text: string }> {
  const { think, ...options } = policy;
  const { conversations } = twentyTurns();
  const [resolves = []] = conversations[0]?.variants ?? [];
  // Three turns are enough: a look, the fix, the end.
  const turns = resolves.slice(-3).map((turn) => (think ? { ...turn, think: 'Let me see.' } : turn));
  await using server = await startScriptedPolicy({
    ...options,
    script: { conversations: [{ variants: [turns] }] },
  });
  const reply = await fetch(`${url}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({
      ...row,
      responses_create_params: { input: [] },
      agent_ref: { name: entry },
      policy_base_url: server.url,
      _rowidx: 0,
    }),
  });
  const text = await reply.text();
  return { ...consume(reply.status, text), text };
}

test('echo is contiguous and trained on', async () => {
  const sample = await rollout('echo', {});
  expect(sample).toMatchObject({ raises: null, masked: false, reward: 1, trainedTurns: 3 });
});

test('a template that strips thinking breaks text: a collector sees it, a trainer gets a named failure instead', async () => {
  const broken: Policy = { template: 'strips-thinking', think: true };
  expect(await rollout('text', broken)).toMatchObject({ raises: 'non-contiguous', reward: 1 });
  const refused = await rollout('strict', broken);
  expect(refused).toMatchObject({ raises: 'infrastructure' });
  expect(refused.text).toContain('policy_tokens');
});

test('no tokens at all are no sample: the same', async () => {
  expect(await rollout('text', { tokens: false })).toMatchObject({ raises: 'no trainable item', reward: 1 });
  const refused = await rollout('strict', { tokens: false });
  expect(refused).toMatchObject({ raises: 'infrastructure' });
  expect(refused.text).toContain('policy_tokens');
});

test('a failed endpoint is never a reward', async () => {
  const failed: Policy = { faults: [{ kind: 'unauthorized' }] };
  expect(await rollout('text', failed)).toMatchObject({ reward: 0, failureClass: 'policy_unauthorized' });
  expect(await rollout('echo', failed)).toMatchObject({ raises: 'infrastructure' });
});

test('a sync trainer gets what was said before the failure, without weight', async () => {
  const sample = await rollout('sync', { faults: [{ kind: 'unauthorized', turn: 2 }] });
  expect(sample).toMatchObject({
    raises: null,
    masked: true,
    reward: 0,
    trainedTurns: 2,
    failureClass: null,
  });
});

test('new weights in the middle: still one contiguous sample', async () => {
  const sample = await rollout('echo', { version: 'w1', faults: [{ kind: 'aborted', turn: 1, times: 1 }] });
  expect(sample).toMatchObject({ raises: null, masked: false, reward: 1, trainedTurns: 3 });
  expect(sample.text).toContain('"policy_version":"w1"');
});
