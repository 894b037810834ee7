/** Two tenants of one gateway: what a caller's token cannot do to the operator's key and to another caller's policy. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Farm, Secret } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { testFolder } from '../farm.ts';
import { bearer, testGateway } from './gateway.ts';
import { row } from './gym.ts';

const { policy_base_url, policy_model_name, responses_create_params, agent_ref, ...instance } = row();
const OPERATOR = 'http://vllm.internal:8000/v1';
const KEY = 'sk-of-the-operator';

/** A trainer, another trainer and a stranger, each with a token of its own; the gateway serves the operator's policy. */
async function tenants() {
  const path = join(await testFolder(), 'callers.yaml');
  const run = `{policy: {urls: ["${OPERATOR}"], model: m`;
  const tokens = ['trainer', 'second', 'stranger', 'nobody'];
  for (const name of tokens) await writeFile(`${path}.${name}`, `token-of-${name}`);
  await writeFile(
    path,
    `callers:
  - {name: trainer, token_file: ${path}.trainer, policies: [default], run: ${run}}}}
  - {name: second, token_file: ${path}.second, run: ${run}, name: second}}}
  - {name: stranger, token_file: ${path}.stranger, run: ${run}}}}
  - {name: nobody, token_file: ${path}.nobody, policies: [], run: ${run}, name: second}}}
`,
  );
  const made = await testGateway({
    gateway_callers: path,
    gateway_token: null,
    policy_api_key: new Secret(KEY),
    policy_api_key_origins: ['http://gpu7:8000'],
  });
  const ask = async (who: string, method: string, route: string, body?: object) => {
    const headers = { ...bearer(`token-of-${who}`), ...(body ? { 'content-type': 'application/json' } : {}) };
    const init = { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) };
    const reply = await fetch(`${made.url}${route}`, init);
    const text = await reply.text();
    return { status: reply.status, body: text === '' ? null : JSON.parse(text) };
  };
  return { ...made, ask };
}

const keyOf = async (farm: Farm, runId: string) => {
  const ref = (await farm.runs.get(runId))?.policy?.api_key_ref;
  return ref ? await farm.secrets.get(ref) : null;
};

test('the key that a run gets is for the origins of the operator, whatever policy the caller names', async () => {
  const { ask, farm } = await tenants();
  const submit = async (policy: object) => {
    const { status, body } = await ask('stranger', 'POST', '/v1/runs', {
      instances: [instance],
      run: { policy },
    });
    expect(status).toBe(201);
    return await keyOf(farm, body.run_id);
  };
  for (const policy of [{}, { name: 'evil' }, { urls: [OPERATOR] }, { urls: ['http://gpu7:8000/v1'] }]) {
    const stored = await submit(policy);
    expect(stored?.secret.reveal()).toBe(KEY);
    expect(stored?.origins).toEqual(['http://vllm.internal:8000', 'http://gpu7:8000']);
  }
  expect(await submit({ urls: ['http://attacker/v1'] })).toBeNull();
  expect(await submit({ urls: [OPERATOR, 'http://attacker/v1'] })).toBeNull();
});

test('only who was given a policy says what it serves; a trainer does around a weight update, a stranger cannot', async () => {
  const { ask, farm } = await tenants();
  const update = { state: 'updating', endpoints: ['http://attacker/v1', OPERATOR] };
  const put = async (who: string, name: string) =>
    (await ask(who, 'PUT', `/v1/policies/${name}`, update)).status;
  expect((await ask('trainer', 'PUT', '/policy', { state: 'serving', version: 'step-1' })).status).toBe(200);
  expect(await put('second', 'second')).toBe(200);
  for (const who of ['stranger', 'second', 'nobody']) {
    const refused = await ask(who, 'PUT', '/policy', update);
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { code: 'policy_forbidden', field: 'name' } },
    });
    expect(refused.body.error.message).toContain('policies: [default]');
    expect(await put(who, 'default')).toBe(403);
    expect((await ask(who, 'DELETE', '/v1/policies/default')).status).toBe(403);
  }
  expect(await put('stranger', 'evil')).toBe(403);
  expect(await put('nobody', 'second')).toBe(403);
  expect(await put('trainer', 'second')).toBe(403);
  expect(await farm.policies.list()).toMatchObject([
    { name: 'default', state: 'serving', endpoints: [], version: 'step-1' },
    { name: 'second', state: 'updating' },
  ]);
  expect((await ask('stranger', 'GET', '/policy')).status).toBe(200);
});
