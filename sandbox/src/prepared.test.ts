import { expect, test } from 'vitest';
import { PreparedContainer } from './prepared.ts';
import type { Container } from './runtime.ts';

function counting(failures = 0) {
  const seen = { started: 0, disposed: 0 };
  const start = async (): Promise<Container> => {
    seen.started++;
    if (seen.started <= failures) throw new Error('engine away');
    return {
      async [Symbol.asyncDispose]() {
        seen.disposed++;
      },
    } as Container;
  };
  return { seen, start };
}

test('what was started ahead is taken first, later ones are fresh', async () => {
  const { seen, start } = counting();
  await using prepared = new PreparedContainer(start);
  prepared.begin();
  await prepared.take();
  expect(seen.started).toBe(1);
  await prepared.take();
  expect(seen.started).toBe(2);
});

test('what was never taken is removed, also while it still starts', async () => {
  const { seen, start } = counting();
  {
    await using prepared = new PreparedContainer(start);
    prepared.begin();
  }
  expect(seen).toEqual({ started: 1, disposed: 1 });
});

test('a failure ahead is not the end: taking tries again and reports', async () => {
  const once = counting(1);
  await using prepared = new PreparedContainer(once.start);
  prepared.begin();
  await prepared.take();
  expect(once.seen.started).toBe(2);
  const twice = counting(2);
  await using hopeless = new PreparedContainer(twice.start);
  hopeless.begin();
  await expect(hopeless.take()).rejects.toThrow('engine away');
});
