import { Secret } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { type Caller, keyFor } from './callers.ts';

const caller = { apiKey: new Secret('the-key-of-the-operator') } as Caller;

test("an operator's key goes to the operator's endpoints, not to one that a caller brought", () => {
  const mine = ['http://vllm:8000/v1', 'http://vllm:8001/v1'];
  expect(keyFor(caller, mine, undefined)).toBe(caller.apiKey);
  expect(keyFor(caller, mine, null)).toBe(caller.apiKey);
  expect(keyFor(caller, mine, [mine[1]])).toBe(caller.apiKey);
  expect(keyFor(caller, mine, [mine[0], 'http://elsewhere/v1'])).toBeNull();
  // An entry that leaves the endpoints to its requests has its key for them.
  expect(keyFor(caller, undefined, ['http://elsewhere/v1'])).toBe(caller.apiKey);
});
