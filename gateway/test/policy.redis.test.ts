import { expect, test } from 'vitest';
import { ask, testGateway } from './gateway.ts';

test('a trainer sets the state of its policy around a weight update', async () => {
  const { url } = await testGateway();
  expect((await ask(`${url}/policy`, 'GET')).status).toBe(404);
  const first = { version: 'step-1', model: 'policy-v1' };
  const started = { ...first, endpoints: ['http://127.0.0.1:9/v1'], state: 'serving' };
  expect((await ask(`${url}/policy`, 'PUT', started)).body).toMatchObject({ name: 'default', ...started });
  for (const state of ['pausing', 'updating'])
    expect((await ask(`${url}/policy`, 'PUT', { state })).body).toMatchObject({ ...first, state });
  const after = await ask(`${url}/v1/policies/default`, 'PUT', { version: 'step-2', state: 'serving' });
  expect(after.body).toMatchObject({ versions: ['step-1', 'step-2'], state: 'serving' });
  expect((await ask(`${url}/policy`, 'GET')).body).toEqual(after.body);
});

test('several policies have states of their own, and bad changes are refused', async () => {
  const { url } = await testGateway();
  await ask(`${url}/v1/policies/validation`, 'PUT', { state: 'serving' });
  expect((await ask(`${url}/v1/policies`, 'GET')).body).toMatchObject([{ name: 'validation' }]);
  expect((await ask(`${url}/v1/policies/validation`, 'DELETE')).status).toBe(204);
  expect((await ask(`${url}/v1/policies/validation`, 'GET')).status).toBe(404);
  for (const [body, field] of [
    [{ state: 'dozing' }, 'state'],
    [{ endpoints: ['nowhere'] }, 'endpoints'],
    [{ endpoints: ['http://me:secret@a/v1'] }, 'URL without user and password'],
    [{ weights: 1 }, 'weights'],
    [{}, 'expected version, endpoints, model or state'],
    [{ model: '' }, 'model'],
  ] as const) {
    const refused = await ask(`${url}/policy`, 'PUT', body);
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain(field);
  }
});
