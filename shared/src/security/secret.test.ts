import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { maskUrl, Secret } from './secret.ts';

test('a secret is revealed only by reveal()', () => {
  const secret = new Secret('hunter2');
  const shown = [
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ deep: [secret] }),
    Object.keys(secret).join(),
  ];
  expect(shown.join()).not.toContain('hunter2');
  expect(secret.reveal()).toBe('hunter2');
  expect(`${new Secret('a', 'b')}`).toBe('b');
});

test.each([
  ['redis://:pw@h:1/0', 'redis://:[secret]@h:1/0'],
  ['redis://user:p%40w:x@h', 'redis://user:[secret]@h'],
  ['at rediss://u:p@a and http://v:q@b.', 'at rediss://u:[secret]@a and http://v:[secret]@b.'],
  ['redis://host:6379/0', 'redis://host:6379/0'],
  ['{"url":"redis://u:p@h"}', '{"url":"redis://u:[secret]@h"}'],
  ['authorization: bearer abcdef123', 'authorization: bearer [secret]'],
  ['mail a@b.c about http://x/y:z@w', 'mail a@b.c about http://x/y:z@w'],
  ['nothing to hide', 'nothing to hide'],
])('%s', (text, masked) => {
  expect(maskUrl(text)).toBe(masked);
});
