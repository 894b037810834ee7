/** The operator's key and endpoints that a caller brings: whatever a policy entry or an endpoint says, it goes to its own origins only. */
import { closePolicyConnections, NO_LIMITS } from '@swefarm/policy';
import { originsOf, PolicyConfig, type PolicyRecord, RolloutFailure, Secret } from '@swefarm/shared';
import { afterAll, expect, test } from 'vitest';
import { NEVER_PAUSED } from '../../src/agent/pause.ts';
import { openEndpoints } from '../../src/agent/policy/endpoints.ts';
import { openPolicy } from '../../src/agent/policy/policy.ts';
import { completion, type Endpoint, sendError, sendJson, startEndpoint } from './endpoint.ts';

afterAll(closePolicyConnections);

const never = new AbortController().signal;
const KEY = 'sk-of-the-operator';
const SHOWN = `Bearer ${KEY}`;

/** A rollout of a run whose own endpoint is the operator's, while a policy entry says what `said` holds. */
function rollout(operator: Endpoint, said: string[], config: Record<string, unknown> = {}) {
  const warnings: string[] = [];
  const record: PolicyRecord = {
    ...{ name: 'evil', version: null, versions: [], endpoints: said, state: 'serving', changed_at: 1 },
  };
  const parsed = PolicyConfig.parse({
    urls: [operator.url],
    model: 'm',
    name: 'evil',
    patience: 0,
    ...config,
  });
  const policy = openPolicy(parsed, {
    apiKey: { secret: new Secret(KEY), origins: originsOf([operator.url]) },
    rolloutId: 'run.a__b-1.0',
    attempt: 1,
    limits: NO_LIMITS,
    followed: {
      pause: NEVER_PAUSED,
      record: () => record,
      refresh: async () => undefined,
      [Symbol.dispose]: () => undefined,
    },
    endpoints: openEndpoints(),
    log: { warn: (_, message) => void warnings.push(message) },
  });
  const turn = () => policy.complete([{ role: 'user', content: 'hi' }], [], never);
  return { policy, record, warnings, turn };
}

const seen = (endpoint: Endpoint) => endpoint.requests.map(({ headers }) => headers.authorization);

test('an endpoint that a policy entry brings never sees the key: no completion, no models, no single tokens', async () => {
  await using operator = await startEndpoint(sendJson(completion('ok')));
  await using evil = await startEndpoint(sendJson(completion('ok')));
  const { policy, turn, warnings } = rollout(operator, [evil.url]);
  using _ = policy;
  await turn();
  await policy.detokenize([1], never);
  const paths = evil.requests.map(({ path }) => path).sort();
  expect(paths).toEqual(['/detokenize', '/v1/chat/completions', '/v1/models']);
  expect(seen(evil)).toEqual([undefined, undefined, undefined]);
  expect(warnings.join()).toContain(`the run's key is for ${originsOf([operator.url])}`);
});

test('of two endpoints of one entry each attempt shows the key to its own, and a policy that moves back gets it again', async () => {
  await using operator = await startEndpoint(sendJson(completion('ok')));
  await using evil = await startEndpoint(sendJson(completion('ok')));
  const { policy, record, turn } = rollout(operator, [operator.url]);
  using _ = policy;
  await turn();
  record.endpoints = [evil.url];
  await turn();
  record.endpoints = [evil.url, operator.url];
  await turn();
  record.endpoints = [operator.url];
  await turn();
  expect(new Set(seen(evil))).toEqual(new Set([undefined]));
  expect(new Set(seen(operator))).toEqual(new Set([SHOWN]));
});

test('the same host on another port or by another scheme is another place', async () => {
  await using operator = await startEndpoint(sendJson(completion('ok')));
  await using evil = await startEndpoint(sendJson(completion('ok')));
  const { host } = new URL(operator.url);
  const named = `http://${host}@${new URL(evil.url).host}/v1`;
  for (const url of [evil.url, evil.url.replace('127.0.0.1', 'localhost'), named]) {
    const { policy, turn } = rollout(operator, [url]);
    using _ = policy;
    await turn().catch(() => undefined);
  }
  expect(new Set(seen(evil))).toEqual(new Set([undefined]));
  expect(operator.requests).toEqual([]);
});

test.each([301, 302, 307, 308])('HTTP %i: a redirection is named and followed nowhere', async (status) => {
  await using evil = await startEndpoint(sendJson(completion('ok')));
  await using operator = await startEndpoint(
    sendJson({}, status, { location: `${evil.url}/chat/completions` }),
  );
  const { policy, turn } = rollout(operator, []);
  using _ = policy;
  const failure = await turn().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RolloutFailure);
  expect(failure).toMatchObject({ failureClass: 'policy_bad_request' });
  expect((failure as Error).message).toContain(`HTTP ${status}: redirects to ${evil.url}`);
  await policy.detokenize([1], never);
  expect(evil.requests).toEqual([]);
});

test('an endpoint that wants the key and is not shown it fails with what to do', async () => {
  await using operator = await startEndpoint(sendJson(completion('ok')));
  await using moved = await startEndpoint(sendError(401, 'who are you'));
  const { policy, turn } = rollout(operator, [moved.url]);
  using _ = policy;
  const failure = await turn().catch((error: unknown) => error as Error);
  expect(failure).toMatchObject({ failureClass: 'policy_unauthorized' });
  expect((failure as Error).message).toContain('policy_api_key_origins');
  expect((failure as Error).message).not.toContain(KEY);
});
