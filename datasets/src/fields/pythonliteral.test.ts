import { expect, test } from 'vitest';
import { LiteralError, parseTextList } from './pythonliteral.ts';

test.each([
  ['[]', []],
  [' [ ] ', []],
  ['["a", "b"]', ['a', 'b']],
  ["['a', \"b's\", 'c\\'d']", ['a', "b's", "c'd"]],
  ["['a',]", ['a']],
  ["['a' 'b', 'c'\n'd']", ['ab', 'cd']],
  [
    "['\\\\n', '\\n', '\\x41', '\\u00e9', '\\U0001f600', '\\101', '\\d']",
    ['\\n', '\n', 'A', 'é', '😀', 'A', '\\d'],
  ],
  ['["\\ud83d\\ude00"]', ['😀']],
  ["['test/a.js | does [x, y] (it\\'s) \"so\"']", ['test/a.js | does [x, y] (it\'s) "so"']],
])('the list %s is read as Python reads it', (text, list) => {
  expect(parseTextList(text)).toEqual(list);
});

test.each([
  ['', 1],
  ['[', 2],
  ["['a'", 5],
  ["['a' , , 'b']", 8],
  ["['a]", 5],
  ["['a\nb']", 4],
  ['[1]', 2],
  ['["a", 1]', 7],
  ["[__import__('os').system('id')]", 2],
  ["['a'] + ['b']", 7],
  ["['\\xg0']", 5],
  ["['\\U00110000']", 5],
  ["['\\N{BULLET}']", 5],
  ["[['a']]", 2],
  ["('a', 'b')", 1],
])('%s is refused with the position of the fault', (text, at) => {
  expect(() => parseTextList(text)).toThrow(LiteralError);
  expect(() => parseTextList(text)).toThrow(`at character ${at}`);
});

// A quadratic reader would need hours.
test('a million characters without an end are refused', () => {
  expect(() => parseTextList(`[${"'a' ".repeat(250_000)}`)).toThrow(LiteralError);
  expect(() => parseTextList('['.repeat(1_000_000))).toThrow(LiteralError);
});
