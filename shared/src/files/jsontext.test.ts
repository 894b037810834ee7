import { expect, test } from 'vitest';
import { jsonText } from './jsontext.ts';

test('lone surrogates become U+FFFD; pairs and escaped backslashes stay', () => {
  const value = { 'a\ud83d': ['\udc00x', '😀', '\\ud83d', '\\\\ud83d', '\\\ud83d', 'é\n'] };
  const text = jsonText(value);
  expect(text.isWellFormed()).toBe(true);
  expect(JSON.parse(text)).toEqual({
    'a\ufffd': ['\ufffdx', '😀', '\\ud83d', '\\\\ud83d', '\\\ufffd', 'é\n'],
  });
});

test('line separators are escaped', () => {
  expect(jsonText('a\u2028b\u2029')).toBe('"a\\u2028b\\u2029"');
  expect(jsonText({ a: [1] }, 1)).toBe('{\n "a": [\n  1\n ]\n}');
});
