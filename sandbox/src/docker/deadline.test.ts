import { expect, test } from 'vitest';
import { engineFailure } from '../engine/errors.ts';
import { inTime } from './deadline.ts';

test('a call has a timeout, and its own result or error is passed on', async () => {
  const late = await inTime(new Promise(() => undefined), 10).catch((error: unknown) => error);
  expect(engineFailure(late, 'sandbox_lost', 'removing x')).toMatchObject({
    failureClass: 'engine_unreachable',
    message: expect.stringContaining('did not answer in 0.01 s'),
  });
  expect(await inTime(Promise.resolve(7), 10_000)).toBe(7);
  await expect(inTime(Promise.reject(new Error('no such container')), 10_000)).rejects.toThrow('no such');
});
