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

test('the container started in advance is taken first, later ones are new', async () => {
  const { seen, start } = counting();
  await using prepared = new PreparedContainer(start);
  prepared.begin();
  await prepared.take();
  expect(seen.started).toBe(1);
  await prepared.take();
  expect(seen.started).toBe(2);
});

test('a container that was never taken is removed, even while it starts', async () => {
  const { seen, start } = counting();
  {
    await using prepared = new PreparedContainer(start);
    prepared.begin();
  }
  expect(seen).toEqual({ started: 1, disposed: 1 });
});

test('after a failed start in advance, taking tries again and throws the second error', async () => {
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
