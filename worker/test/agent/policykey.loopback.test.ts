/** The operator's key and endpoints of a caller: the key is sent to its own origins only. */
import { originsOf, PolicyConfig, type PolicyRecord, RolloutFailure, Secret } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { completion, type Endpoint, sendError, sendJson, startEndpoint } from './endpoint.ts';
import { never, policyAt, START, unfollowed } from './scripted.ts';

const KEY = 'sk-of-the-operator';
const SHOWN = `Bearer ${KEY}`;

/** A rollout of a run that names the operator's endpoint and follows a policy whose record names the endpoints `urls`. */
function rollout(operator: Endpoint, urls: string[], config: Record<string, unknown> = {}) {
  const warnings: string[] = [];
  const record: PolicyRecord = {
    ...{
      name: 'evil',
      version: null,
      versions: [],
      endpoints: urls,
      model: null,
      state: 'serving',
      changed_at: 1,
    },
  };
  const plain = { urls: [operator.url], model: 'm', name: 'evil', patience: 0 };
  const parsed = PolicyConfig.parse({ ...plain, ...config });
  const policy = policyAt(parsed, {
    apiKey: { secret: new Secret(KEY), origins: originsOf([operator.url]) },
    followed: { ...unfollowed, record: () => record },
    log: { warn: (_, message) => void warnings.push(message) },
  });
  const turn = () => policy.complete(START, [], never);
  return { policy, record, warnings, turn };
}

const seen = (endpoint: Endpoint) => endpoint.requests.map(({ headers }) => headers.authorization);

test('an endpoint of a policy entry never receives the key, on no route', async () => {
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

test('each attempt sends the key to its own endpoint only, and again after a move back', async () => {
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

test('another port or scheme of the same host is another origin', async () => {
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

test.each([301, 302, 307, 308])('HTTP %i: a redirection is named and not followed', async (status) => {
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

test('an endpoint that needs the withheld key fails with a remedy', async () => {
  await using operator = await startEndpoint(sendJson(completion('ok')));
  await using moved = await startEndpoint(sendError(401, 'who are you'));
  const { policy, turn } = rollout(operator, [moved.url]);
  using _ = policy;
  const failure = await turn().catch((error: unknown) => error as Error);
  expect(failure).toMatchObject({ failureClass: 'policy_unauthorized' });
  expect((failure as Error).message).toContain('policy_api_key_origins');
  expect((failure as Error).message).not.toContain(KEY);
});
