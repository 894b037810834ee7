import type { Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { createChatTemplate } from './tokenizer.ts';

const calling = (text: string): Message[] => [
  { role: 'user', content: 'go' },
  {
    role: 'assistant',
    content: '',
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'bash', arguments: text } }],
  },
];
const render = (source: string, messages: Message[], open = true) =>
  createChatTemplate(source, { bos_token: '<s>' })(messages, [], open);
const OF_CALL = (what: string) =>
  `{% for m in messages %}{% for c in m.tool_calls or [] %}${what}{% endfor %}{% endfor %}`;

describe('arguments of calls', () => {
  test.each(['c.function.arguments | items', 'c.function.arguments.items()'])(
    'are walked by %s, as servers give them',
    (walk) => {
      const source = OF_CALL(`{% for k, v in ${walk} %}{{ k }}={{ v }};{% endfor %}`);
      expect(render(source, calling('{"command":"ls","n":2}'))).toBe('command=ls;n=2;');
    },
  );
  test('are text for a template that accepts only text', () => {
    const source = OF_CALL("{{ c.function.arguments.strip() + '|' }}");
    expect(render(source, calling(' {"command":"ls"} '))).toBe('{"command":"ls"}|');
  });
  test('are text for a template that joins them to other text', () => {
    const source = `{{ messages[0].content }}${OF_CALL("{{ '<' + c.function.arguments + '>' }}")}`;
    for (const content of ['go', '[object Map]']) {
      const messages: Message[] = [{ role: 'user', content }, ...calling('{"command":"ls"}').slice(1)];
      expect(render(source, messages)).toBe(`${content}<{"command":"ls"}>`);
    }
    const walks = `{{ messages[0].content }}${OF_CALL('{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}')}`;
    const messages: Message[] = [
      { role: 'user', content: '[object Map]' },
      ...calling('{"command":"ls"}').slice(1),
    ];
    expect(render(walks, messages)).toBe('[object Map]command=ls');
  });
  test('that are not JSON stay text', () => {
    const source = OF_CALL('{{ c.function.arguments if c.function.arguments is string else 1 }}');
    expect(render(source, calling('{"command"'))).toBe('{"command"');
  });
});

test.each([
  ['raises', "{{ raise_exception('roles must alternate') }}", /roles must alternate/],
  ['wants what there is not', OF_CALL('{{ c.function.arguments | nothing }}'), /nothing/],
  ['is no template', '{% for m in messages %}', /./],
])('a template that %s is a fault of that name, with what to do', (_, source, message) => {
  const fault = () => render(source, calling('{}'));
  expect(fault).toThrow(expect.objectContaining({ name: 'AnswerError', kind: 'template' }));
  expect(fault).toThrow(message);
  expect(fault).toThrow(/leave --tokenizer out .* or give a chat_template in --extra-body/);
});

test("the head of the next answer is optional, and the template gets the run's variables", () => {
  const source = "{{ bos_token }}{{ 'A:' if add_generation_prompt }}";
  expect([render(source, [], true), render(source, [], false)]).toEqual(['<s>A:', '<s>']);
});
