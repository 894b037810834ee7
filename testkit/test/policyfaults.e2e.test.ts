/** Tests faults of the scripted policy and clients that disconnect, over loopback. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FaultRuleInput, type ScriptedPolicy, startScriptedPolicy } from '../src/index.ts';
import { ask, type Completion, opening, post, script } from './policyclient.ts';

describe('faults', () => {
  let policy: ScriptedPolicy;
  beforeAll(async () => {
    policy = await startScriptedPolicy({ script });
  });
  afterAll(() => policy[Symbol.asyncDispose]());
  const hit = async (rule: FaultRuleInput, messages = opening(), rollout = 'r.i.0') => {
    await policy.setFault(rule);
    const body = { messages, return_token_ids: true, logprobs: true };
    return post(policy, body, rollout, AbortSignal.timeout(30_000));
  };

  it.each([
    ['unauthorized', 401],
    ['model_unknown', 404],
    ['rate_limited', 429],
    ['server_error', 500],
    ['unavailable', 503],
    ['context_overflow', 400],
  ] as const)('%s answers %i in the shape of an error', async (kind, status) => {
    const response = await hit({ kind, retry_after: 3 });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code: status, message: expect.any(String) } });
    if (status === 429) expect(response.headers.get('retry-after')).toBe('3');
  });

  it('break the connection or the body', async () => {
    await expect(hit({ kind: 'reset' })).rejects.toThrow(TypeError);
    await expect((await hit({ kind: 'cut' })).text()).rejects.toThrow(TypeError);
    await expect((await hit({ kind: 'garbage' })).json()).rejects.toThrow(SyntaxError);
    expect(await (await hit({ kind: 'no_choices' })).json()).toMatchObject({ choices: [] });
    const since = performance.now();
    expect(await (await hit({ kind: 'slow_body', ms: 400 })).json()).toMatchObject({
      object: 'chat.completion',
    });
    expect(performance.now() - since).toBeGreaterThan(300);
  });

  it('refuse connections until the rules are removed', async () => {
    // The first call uses a kept-alive connection that the server has closed.
    await expect(hit({ kind: 'refuse' })).rejects.toThrow(TypeError);
    await expect(post(policy, {})).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    await policy.setFault();
    expect((await post(policy, { messages: opening() })).status).toBe(200);
  });

  it('spoil the tokens', async () => {
    const read = async (kind: FaultRuleInput['kind'], messages = opening()) =>
      (await (await hit({ kind }, messages)).json()) as Completion;
    const missing = await read('missing_token_ids');
    expect([missing.prompt_token_ids, missing.choices[0].token_ids]).toEqual([null, null]);
    const probs = await read('short_log_probs');
    expect(probs.choices[0].logprobs?.content.length).toBe((probs.choices[0].token_ids?.length ?? 0) - 1);
    const ids = await read('short_token_ids');
    expect(ids.choices[0].token_ids?.length).toBe(ids.usage.completion_tokens - 1);
    const later = [...opening(), { role: 'assistant', content: 'x' }, { role: 'user', content: 'y' }];
    await policy.setFault();
    const whole = await ask(policy, { messages: later, return_token_ids: true }, 'r.i.0');
    const torn = await read('non_contiguous', later);
    expect(torn.prompt_token_ids?.length).toBe(whole.prompt_token_ids?.length);
    expect(torn.prompt_token_ids).not.toEqual(whole.prompt_token_ids);
  });

  it('hit only the named requests, the given number of times', async () => {
    await policy.setFault(
      { kind: 'server_error', rollout: 'r.i.7', times: 1 },
      { kind: 'unavailable', turn: 9 },
    );
    const status = async (rollout: string) => (await post(policy, { messages: opening() }, rollout)).status;
    expect([await status('r.i.6'), await status('r.i.7'), await status('r.i.7')]).toEqual([200, 500, 200]);
    const flaky = async () => (await post(policy, { messages: opening('flaky') }, 'r.i.0')).status;
    expect([await flaky(), await flaky(), await flaky()]).toEqual([503, 503, 200]);
  });

  it('strike at random by the seed, in the same way in each run', async () => {
    const strike = async () => {
      const faults = [{ kind: 'server_error', probability: 0.5 }] as const;
      await using server = await startScriptedPolicy({ script, faults });
      const rollouts = Array.from({ length: 24 }, (_, index) => `r.i.${index}`);
      return await Promise.all(
        rollouts.map(async (id) => (await post(server, { messages: opening() }, id)).status),
      );
    };
    const first = await strike();
    expect(await strike()).toEqual(first);
    expect(new Set(first)).toEqual(new Set([200, 500]));
  });

  it('can be set over HTTP, and an error names the wrong field', async () => {
    const base = policy.url.replace(/\/v1$/, '');
    const set = (rules: unknown) => fetch(`${base}/faults`, { method: 'POST', body: JSON.stringify(rules) });
    expect((await set([{ kind: 'server_error' }])).status).toBe(200);
    expect((await post(policy, { messages: opening() })).status).toBe(500);
    const bad = await set([{ kind: 'nonsense' }]);
    expect([bad.status, await bad.text()]).toEqual([400, expect.stringContaining('0.kind')]);
    expect((await set([{ kind: 'refuse' }])).status).toBe(400);
    expect((await set([{ kind: 'refuse', ms: 3000 }])).status).toBe(200);
    const isUp = () =>
      fetch(`${base}/health`).then(
        () => true,
        () => false,
      );
    await expect.poll(isUp).toBe(false);
    await expect.poll(isUp).toBe(true);
    expect((await set([])).status).toBe(200);
    expect((await post(policy, { messages: opening() })).status).toBe(200);
  });
});

describe('a client that disconnects', () => {
  it.each([
    ['during the delay', 'slow', []],
    ['of a silent server', 'fix', [{ kind: 'silence' }]],
    ['in the middle of the body', 'fix', [{ kind: 'slow_body', ms: 60_000 }]],
  ] as const)('%s is seen at once and frees its place', async (_, text, faults) => {
    await using policy = await startScriptedPolicy({ script, faults });
    const leaving = new AbortController();
    const asking = post(policy, { messages: opening(text) }, 'r.i.0', leaving.signal).then((response) =>
      response.text(),
    );
    await expect.poll(() => policy.stats().in_flight).toBe(1);
    leaving.abort();
    await expect(asking).rejects.toThrow(/abort/);
    await expect
      .poll(() => policy.stats(), { timeout: 20_000 })
      .toMatchObject({
        in_flight: 0,
        max_in_flight: 1,
        aborted: 1,
        answered: 0,
        rollouts: { 'r.i.0': { aborted: [{ turn: 0 }] } },
      });
  });
});
