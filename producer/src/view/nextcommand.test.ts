import { expect, test } from 'vitest';
import { nextCommand } from './nextcommand.ts';

const OK = [{ status: 'ok', subject: 'redis', detail: '' }] as const;
const NONE = { redisUrl: undefined, hasFarm: false, policyUrls: [], model: undefined };

test('without a farm and a policy the gold patches are the first rollouts', () => {
  expect(nextCommand(OK, NONE)?.join(' ')).toBe(
    'rollout --dataset rows.jsonl --agent golden --output results.jsonl',
  );
});

test('a farm and a policy that were checked are those of the next command, without a password', () => {
  const of = { ...NONE, hasFarm: true, policyUrls: ['http://gpu:8000/v1'], model: 'm' };
  expect(nextCommand(OK, { ...of, redisUrl: 'redis://farm:6379' })?.join(' ')).toBe(
    'submit --redis-url redis://farm:6379 --dataset rows.jsonl --policy-url http://gpu:8000/v1 --model m --output results.jsonl',
  );
  expect(nextCommand(OK, { ...of, redisUrl: 'redis://:secret@farm:6379' })?.join(' ')).not.toContain(
    'secret',
  );
  expect(nextCommand(OK, of)?.slice(0, 2)).toEqual(['submit', '--dataset']);
});

test('after a failed check there is no next command', () => {
  expect(nextCommand([...OK, { status: 'fail', subject: 'policy', detail: '' }], NONE)).toBeNull();
});
