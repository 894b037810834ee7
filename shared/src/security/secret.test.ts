import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { maskSecrets, maskUrl, Secret } from './secret.ts';

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

test.each([
  'redis://:sesame00@h:1/0',
  'redis+sentinel://:sesame11@a:1,b:2/farm',
  'rediss+cluster://user:sesame22@a:1,b:2',
  'redis://:50%sesame@h',
])('the password of %s is masked wherever it stands', (url) => {
  expect(new Secret(url, maskUrl(url)).reveal()).toBe(url);
  const password = /:([^:@]+)@/.exec(url)?.[1];
  expect(maskSecrets(`WRONGPASS for ${password}`)).toBe('WRONGPASS for [secret]');
});
