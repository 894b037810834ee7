import { expect, test } from 'vitest';
import { createRemovals } from './removals.ts';

function slowContainer() {
  let finish = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return { container: { [Symbol.asyncDispose]: () => gone }, finish: () => finish() };
}

test('a removal runs in the background, and finished() waits for it', async () => {
  const leaving = createRemovals();
  const { container, finish } = slowContainer();
  await leaving.remove(container);
  let isDone = false;
  const end = leaving.finished().then(() => {
    isDone = true;
  });
  await Promise.resolve();
  expect(isDone).toBe(false);
  finish();
  await end;
  expect(isDone).toBe(true);
});

test('above the limit a removal waits for an earlier one', async () => {
  const leaving = createRemovals(1);
  const [first, second] = [slowContainer(), slowContainer()];
  await leaving.remove(first.container);
  let letGo = false;
  const waiting = leaving.remove(second.container).then(() => {
    letGo = true;
  });
  await Promise.resolve();
  expect(letGo).toBe(false);
  first.finish();
  await waiting;
  expect(letGo).toBe(true);
  second.finish();
});

test('a failed removal counts as ended', async () => {
  const leaving = createRemovals();
  await leaving.remove({ [Symbol.asyncDispose]: () => Promise.reject(new Error('engine away')) });
  await leaving.finished();
});
