import { expect, test } from 'vitest';
import { UsageError } from '../failures/errors.ts';
import { parseTemplate, renderTemplate } from './prompttemplates.ts';

const render = (text: string, values: Record<string, string | number>) =>
  renderTemplate(parseTemplate('t.md', text, ['a', 'b']), values);

test('names are replaced everywhere, with or without blanks', () => {
  expect(render('{{a}}-{{ b }}-{{a}}', { a: 1, b: 'x' })).toBe('1-x-1');
});
test('values are not expanded', () => {
  expect(render('{{a}}{{b}}', { a: '{{b}}', b: '$& $1 {{a}}' })).toBe('{{b}}$& $1 {{a}}');
});
test('two braces can be escaped', () => expect(render('\\{{a}} {a} }}', {})).toBe('{{a}} {a} }}'));
test.each([
  ['an unknown name', 'one\n{{c}}', /t\.md, line 2: unknown name \{\{c\}\}; known here: a, b/],
  ['an unclosed name', 'x {{a', /t\.md, line 1: "\{\{" that is no/],
  ['an expression', '{{ a | upper }}', /that is no/],
])('%s is an error when the template is parsed', (_, text, message) => {
  expect(() => parseTemplate('t.md', text, ['a', 'b'])).toThrow(UsageError);
  expect(() => parseTemplate('t.md', text, ['a', 'b'])).toThrow(message);
});
test('a name without a value is an error', () => {
  expect(() => render('{{a}}', {})).toThrow(/no value for \{\{a\}\}/);
  expect(() => render('{{a}}', Object.create({ a: 'inherited' }))).toThrow(/no value/);
});
