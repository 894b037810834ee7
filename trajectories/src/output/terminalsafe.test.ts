import { expect, test } from 'vitest';
import { terminalSafe } from './terminalsafe.ts';

test.each([
  ['plain\ttext\nand more', 'plain\ttext\nand more'],
  ['\u001b]0;title\u0007\u001b[2J', '␛]0;title␇␛[2J'],
  ['\u009b31m', '<009b>31m'],
  ['a\r\nb\rc', 'a\nb␍c'],
  ['abc\u202edef', 'abc<202e>def'],
  ['naïve ✓ 日本', 'naïve ✓ 日本'],
])('%j is printed as %j', (text, shown) => {
  expect(terminalSafe(text)).toBe(shown);
});
