import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { joinedStream } from './joinedstream.ts';

test('a broken output is an error of the stream, and destroys the input', async () => {
  const [output, input] = [new PassThrough(), new PassThrough()];
  const reading = text(joinedStream(output, input));
  output.destroy(new Error('broken'));
  await expect(reading).rejects.toThrow('broken');
  expect(input.destroyed).toBe(true);
});
