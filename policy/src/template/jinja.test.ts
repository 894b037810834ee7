import { UsageError } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { parseJinja } from './jinja.ts';

const render = (text: string, values: Record<string, unknown> = {}) =>
  parseJinja('set.yaml', text, ['output', 'task'])(values);

test('blanks stay as in Jinja2 without options', () => {
  expect(render('a\n  {% if true %}\nb\n  {%- endif %}\nc\n')).toBe('a\n  \nb\nc');
});
test('an observation of mini-swe-agent: conditions, filters, slices, own names', () => {
  const text =
    '{% if output.output | length < 5 -%}\n<o>{{ output.output -}}</o>\n{%- else -%}\n{%- set left = output.output | length - 4 -%}{{ output.output[:2] }}~{{ left }}~{{ output.output[-2:] }}\n{%- endif -%}';
  expect(render(text, { output: { output: 'abc' } })).toBe('<o>abc</o>');
  expect(render(text, { output: { output: 'abcdefgh' } })).toBe('ab~4~gh');
});
test('values are text, never templates', () => {
  expect(render('{{ task }}', { task: '{{ output }} {% if %}' })).toBe('{{ output }} {% if %}');
});
test.each([
  ['an unknown name', 'one\n{{ tusk }}', /set\.yaml, line 2: unknown name tusk; known here: output, task/],
  ['an open block', '{% if output %}x', /set\.yaml: /],
  ['an unknown filter', '{{ task | explode }}', /set\.yaml: /],
  ['a loop over a range', '{% for i in range(9) %}{{ i }}{% endfor %}', /set\.yaml: /],
])('%s is an error that names the set', (_, text, message) => {
  expect(() => render(text, { task: 'x' })).toThrow(UsageError);
  expect(() => render(text, { task: 'x' })).toThrow(message);
});
