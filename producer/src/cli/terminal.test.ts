import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { repeatCommand, widthOf } from './terminal.ts';

test('a shell reads the words that were given, and what must be there too', () => {
  const args = ['eval', '--dataset', 'my rows.jsonl', "--match=it's $HOME", '--report-dir', ''];
  const text = repeatCommand(args, ['--run-id', 'mine']);
  const words = execFileSync('sh', ['-c', `printf '%s\\n' ${text.slice('npx swefarm '.length)}`], {
    encoding: 'utf8',
  });
  expect(words.split('\n').slice(0, -1)).toEqual([...args, '--run-id', 'mine']);
  expect(repeatCommand(['eval', '--run-id', 'mine'], ['--run-id', 'mine'])).toBe(
    'npx swefarm eval --run-id mine',
  );
  expect(repeatCommand(['eval', '--run-id=mine'], ['--run-id', 'mine'])).toBe(
    'npx swefarm eval --run-id=mine',
  );
});

test('a password stays where it was given', () => {
  const args = ['eval', '--redis-url', 'redis://:word@host:6379'];
  expect(repeatCommand(args, ['--run-id', 'mine'])).toBe('the same command --run-id mine');
});

test('a terminal that reports no columns has the usual width', () => {
  expect([{ columns: 0 }, {}, { columns: 70 }].map((stream) => widthOf(stream as never))).toEqual([
    100, 100, 70,
  ]);
});
