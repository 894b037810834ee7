import { Secret } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { Caller } from './callers.ts';
import { keyFor, keyOrigins } from './policykeys.ts';

const caller = {
  apiKey: new Secret('the-key-of-the-operator'),
  apiKeyOrigins: [],
} as Partial<Caller> as Caller;
const mine = ['http://vllm:8000/v1', 'http://vllm:8001/v1'];
const origins = ['http://vllm:8000', 'http://vllm:8001'];

test("an operator's key is for the operator's endpoints, not for runs that name another", () => {
  for (const asked of [undefined, null, [mine[1]], ['http://vllm:8000/other']]) {
    expect(keyFor(caller, mine, asked)).toEqual({ secret: caller.apiKey, origins });
  }
  expect(keyFor(caller, mine, [mine[0], 'http://elsewhere/v1'])).toBeNull();
  expect(keyFor(caller, mine, [mine[0], 'nowhere'])).toBeNull();
  expect(keyFor({ ...caller, apiKey: null }, mine, undefined)).toBeNull();
});

test('a key without endpoints is sent only to the origins of the entry', () => {
  expect(keyFor(caller, undefined, ['http://elsewhere/v1'])).toBeNull();
  expect(keyFor(caller, [], undefined)).toBeNull();
  const listed = { ...caller, apiKeyOrigins: ['http://gpu7:8000'] };
  expect(keyFor(listed, undefined, ['http://gpu7:8000/v1'])?.origins).toEqual(['http://gpu7:8000']);
  expect(keyOrigins(listed, mine)).toEqual([...origins, 'http://gpu7:8000']);
});
