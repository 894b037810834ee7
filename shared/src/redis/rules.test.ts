import { expect, test } from 'vitest';
import { SwefarmError } from '../failures/errors.ts';
import type { Result } from '../records/result.ts';
import { encodeResult, parseCommitted, signature } from './commit.ts';
import { asUnusable, refusedByRedis, throwingUnusable } from './outage.ts';
import { priorityOf } from './queue.ts';

test('priorities separate classes, order groups, are never 0, and fit BullMQ', () => {
  expect(priorityOf('validation', 0)).toBe(1);
  expect(priorityOf('training', 5)).toBeLessThan(priorityOf('training', 6));
  for (const sequence of [0, 1, 2 ** 19 - 2, 2 ** 19 - 1, 2 ** 20, 1e6]) {
    expect(priorityOf('validation', sequence)).toBeGreaterThan(0);
    expect(priorityOf('validation', sequence)).toBeLessThan(priorityOf('training', 0));
    expect(priorityOf('training', sequence)).toBeLessThan(priorityOf('collection', 0));
    expect(priorityOf('collection', sequence)).toBeLessThan(2 ** 21);
  }
});

const base = { rollout_id: 'r.i.0', seconds: { total: 1.23456789 }, failure: null } as unknown as Result;
const failing = (message: string, more: object = {}): Result =>
  ({ ...base, ...more, failure: { stage: 'policy', class: 'policy_slow', message, attempts: 1 } }) as Result;

test('a long failure message loses its middle', () => {
  expect(JSON.parse(encodeResult(base)).seconds.total).toBe(1.2346);
  const usual = { artifact: 'a'.repeat(900) };
  const step = `setup step "put the bug in" in the agent sandbox ended with exit code 1: ${'x'.repeat(240)}: no space left`;
  expect(JSON.parse(encodeResult(failing(step, usual))).failure.message).toBe(step);
  for (const middle of ['x', 'ü', '"', '\u0001', '😀'].map((text) => text.repeat(2000))) {
    const text = encodeResult(failing(`evaluation: ${middle}: no space left`, usual));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
    const { failure, artifact } = JSON.parse(text);
    expect(failure.message).toMatch(/^evaluation: .*….*: no space left$/u);
    expect(failure.message.length).toBeLessThanOrEqual(512);
    expect(failure.message.isWellFormed()).toBe(true);
    expect(artifact).toHaveLength(900);
  }
});

test('a result above 4 KB is refused', () => {
  expect(encodeResult({ ...base, artifact: 'a'.repeat(3000) }).length).toBeGreaterThan(3000);
  expect(() => encodeResult({ ...base, artifact: 'a'.repeat(5000) })).toThrow(/has \d+ bytes/);
});

test('a committed entry is parsed, also with spaces in the name of the worker', () => {
  const entry = { attempt: 3, outcome: 'judged', stream_id: '17-0', worker: 'a worker' };
  const written = `3 judged 17-0 ${signature('a worker', 'kx1')}`;
  expect(parseCommitted(written)).toEqual({ ...entry, claim: 'kx1' });
});

test.each([
  ['OOM command not allowed when used memory > maxmemory', 'redis_full'],
  ['WRONGPASS invalid username-password pair', 'redis_auth'],
  ['self-signed certificate in certificate chain', 'redis_tls'],
  ['connect ECONNREFUSED 127.0.0.1:1', 'redis_unreachable'],
  ['LOADING Redis is loading the dataset in memory', 'redis_unreachable'],
  [
    "READONLY You can't write against a read only replica. script: 0b7c, on @user_script:19.",
    'redis_unreachable',
  ],
  ['ERR Error running script: @user_script:1: -NOREPLICAS Not enough good replicas', 'redis_unreachable'],
  ['UNBLOCKED force unblock from blocking operation, instance state changed', 'redis_unreachable'],
  ['BUSY Redis is busy running a script.', 'redis_unreachable'],
  ['MISCONF Errors writing to the AOF file: No space left on device', 'redis_full'],
])('%s is %s', (message, code) => {
  expect(asUnusable(new Error(message), 'redis://h')?.code).toBe(code);
  expect(refusedByRedis(new Error(message))).toBe(true);
});

test('a refused transaction has the reason of its refused command', () => {
  const aborted = new Error('EXECABORT Transaction discarded because of previous errors.');
  const because = (message: string) => Object.assign(aborted, { previousErrors: [new Error(message)] });
  expect(asUnusable(because('OOM command not allowed'), 'redis://h')?.code).toBe('redis_full');
  expect(asUnusable(because('WRONGTYPE Operation against a key'), 'redis://h')).toBeNull();
});

test('other errors are no outages', () => {
  expect(asUnusable(new Error('WRONGTYPE Operation against a key'), 'redis://h')).toBeNull();
  expect(asUnusable(new Error('BUSYGROUP Consumer Group name already exists'), 'redis://h')).toBeNull();
  expect(asUnusable(new TypeError('x is not a function'), 'redis://h')).toBeNull();
  const disk = new SwefarmError('artifact_store', 'cannot write /shared/a: ETIMEDOUT: connection timed out');
  expect(asUnusable(disk, 'redis://h')).toBeNull();
  expect(refusedByRedis(new Error('Connection is closed.'))).toBe(false);
});

test('parts throw outages as UnusableError, and their synchronous functions stay so', async () => {
  const away = new Error('connect ECONNREFUSED 127.0.0.1:1');
  class Above {
    protected readonly known = true;
    isKnown(): boolean {
      return this.known;
    }
  }
  class Part extends Above {
    async read(): Promise<never> {
      throw away;
    }
    async *parts(): AsyncGenerator<string> {
      yield 'one';
      throw away;
    }
  }
  const part = throwingUnusable(new Part(), 'redis://h');
  expect(part.isKnown()).toBe(true);
  await expect(part.read()).rejects.toMatchObject({ code: 'redis_unreachable' });
  await expect(Array.fromAsync(part.parts())).rejects.toMatchObject({ code: 'redis_unreachable' });
});
