import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readAnswers } from './supervisor.ts';

test('answers are told apart from error messages, also from an incomplete line', async () => {
  const stream = new PassThrough();
  const answers = readAnswers(stream);
  const ready = answers.next();
  const done = answers.next();
  stream.write('bwrap: no\nrea');
  stream.write('dy\n');
  expect(await ready).toBe('ready');
  stream.write('done\nCannot alloc');
  expect(await done).toBe('done');
  expect(answers.rest()).toBe('bwrap: no\nCannot alloc');
});
