import { expect, test } from 'vitest';
import { MarkedOutput } from './marked.ts';

const NONCE = 'abc123';
const TEXT = `one\x01abc12 \x01\nabc123 7\n${'\x01abc'}`;

/** Returns the output and the exit code for input in pieces of `size` bytes. */
function read(all: string, size: number): { printed: string; code: number | null } {
  let printed = '';
  let code: number | null = null;
  const output = new MarkedOutput(NONCE, (bytes) => {
    printed += bytes.toString('latin1');
  });
  const bytes = Buffer.from(all, 'latin1');
  for (let at = 0; at < bytes.length; at += size) code = output.push(bytes.subarray(at, at + size));
  output.end();
  return { printed, code };
}

test.each([1, 2, 3, 7, 1000])(
  'an answer is found in pieces of %i bytes, and nothing of the output is lost',
  (size) => {
    expect(read(`${TEXT}\x01${NONCE} 137\nlate`, size)).toEqual({ printed: TEXT, code: 137 });
    expect(read(TEXT, size)).toEqual({ printed: TEXT, code: null });
    expect(read(`${TEXT}\x01${NONCE} 13`, size)).toEqual({ printed: `${TEXT}\x01${NONCE} 13`, code: null });
  },
);

test('output that cannot begin an answer is printed at once', () => {
  const printed: string[] = [];
  const output = new MarkedOutput(NONCE, (bytes) => void printed.push(bytes.toString('latin1')));
  output.push(Buffer.from('a line\n'));
  output.push(Buffer.from('x\x01y'));
  expect(printed).toEqual(['a line\n', 'x\x01y']);
});
