/** Each family's calls, as its chat template writes them, and the mistakes that models make in them. */

import { TOOL_PARSERS } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { parseBy, parseToolCalls, unreadCallIn } from './registry.ts';

const COMMAND = 'cat <<E\n"x" </y> é\nE\n';
const ARGS = JSON.stringify({ command: COMMAND });
const JSON_CALL = `{"name": "bash", "arguments": ${ARGS}}`;

/** Name, text after `I look.`, and the ids that the model samples. */
const WRITTEN: [parser: string, text: string, ids?: string[]][] = [
  [
    'hermes',
    `\n<tool_call>\n${JSON_CALL}\n</tool_call>\n<tool_call>\n{"name": "submit_solution"}\n</tool_call>`,
  ],
  [
    'qwen3_coder',
    `\n<tool_call>\n<function=bash>\n<parameter=command>\n${COMMAND}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=submit_solution>\n</function>\n</tool_call>`,
  ],
  [
    'qwen3_coder',
    `<function=bash>\n<parameter=command>\n${COMMAND}\n</parameter>\n</function><function=submit_solution></function>`,
  ],
  ['qwen3_coder', `<function=bash>${ARGS}</function><function=submit_solution>{}</function>`],
  [
    'glm',
    `\n<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>${COMMAND}\n</arg_value>\n</tool_call>\n<tool_call>submit_solution\n</tool_call>`,
  ],
  [
    'kimi_k2',
    `<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:4<|tool_call_argument_begin|>${ARGS}<|tool_call_end|><|tool_call_begin|>functions.submit_solution:5<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`,
    ['functions.bash:4', 'functions.submit_solution:5'],
  ],
  [
    'deepseek_v3',
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>${ARGS}<｜tool▁call▁end｜><｜tool▁call▁begin｜>submit_solution<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  ],
  [
    'deepseek_v3',
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n\`\`\`json\n${ARGS}\n\`\`\`<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>submit_solution\n\`\`\`json\n{}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  ],
  ...['function_calls', 'tool_calls'].map((block): [string, string] => [
    'deepseek_dsml',
    `\n\n<｜DSML｜${block}>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">${COMMAND}</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="submit_solution"/>\n</｜DSML｜${block}>`,
  ]),
  [
    'minimax_m2',
    `\n<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">\n${COMMAND}\n</parameter>\n</invoke>\n<invoke name="submit_solution">\n</invoke>\n</minimax:tool_call>`,
  ],
  ['minimax_m1', `<tool_calls>\n${JSON_CALL}\n{"name": "submit_solution", "arguments": {}}\n</tool_calls>`],
  ['nemotron', `<TOOLCALL>[${JSON_CALL}, {"name": "submit_solution", "arguments": {}}]</TOOLCALL>`],
  ['mistral', `[TOOL_CALLS]bash[ARGS]${ARGS}[TOOL_CALLS]submit_solution[ARGS]{}`],
  [
    'mistral',
    `[TOOL_CALLS]bash[CALL_ID]abcdefghi[ARGS]${ARGS}[TOOL_CALLS]submit_solution[CALL_ID]123456789[ARGS]{}`,
    ['abcdefghi', '123456789'],
  ],
  [
    'mistral',
    `[TOOL_CALLS] [{"name": "bash", "arguments": ${ARGS}, "id": "abcdefghi"}, {"name": "submit_solution", "arguments": {}, "id": "123456789"}]`,
    ['abcdefghi', '123456789'],
  ],
  [
    'llama3_json',
    `<|python_tag|>{"name": "bash", "parameters": ${ARGS}}; {"name": "submit_solution", "parameters": {}}`,
  ],
  [
    'lfm2',
    `<|tool_call_start|>[bash(command=${JSON.stringify(COMMAND)}), submit_solution()]<|tool_call_end|>`,
  ],
  ['pythonic', `<|python_start|>[bash(command=${JSON.stringify(COMMAND)}), submit_solution()]<|python_end|>`],
  [
    'seed_oss',
    `<seed:tool_call>\n<function=bash>\n<parameter=command>\n${COMMAND}\n</parameter>\n</function>\n<function=submit_solution>\n</function>\n</seed:tool_call>`,
  ],
];

describe.each(WRITTEN)('%s', (parser, text, ids) => {
  test.each(['auto', parser])('two calls after plain words, by %s', (by) => {
    const read = parseToolCalls(`I look.${text}`, by as 'auto');
    expect(read?.content).toBe('I look.');
    const [bash, submit] = read?.calls ?? [];
    expect(bash).toMatchObject({ name: 'bash', ...(ids && { id: ids[0] }) });
    expect(JSON.parse(bash?.arguments ?? '')).toEqual({ command: COMMAND });
    expect(submit).toMatchObject({ name: 'submit_solution', arguments: '{}', ...(ids && { id: ids[1] }) });
    expect(read?.calls).toHaveLength(2);
  });
  test('a call that is cut off is text and is reported as unread', () => {
    const half = `I look.${text.slice(0, text.indexOf('</y>'))}`;
    expect(parseToolCalls(half)).toBeNull();
    expect(unreadCallIn(half)?.reason).toMatch(/not closed|no closed|not valid JSON|whole JSON/);
  });
});

function argumentsBy(parser: 'llama3_json' | 'pythonic', text: string): unknown {
  const read = parseBy(text, parser);
  return read && 'calls' in read && JSON.parse(read.calls[0]?.arguments ?? '');
}

test.each([
  ['llama3_json', `{"name": "bash", "parameters": ${ARGS}}`],
  ['pythonic', `[bash(command=${JSON.stringify(COMMAND)})]`],
  ['pythonic', "[bash(command='''cat <<E\n\"x\" </y> \\u00e9\nE\n''')]"],
] as const)('calls without markers are read by name only: %s', (parser, text) => {
  expect(parseToolCalls(text)).toBeNull();
  expect(argumentsBy(parser, text)).toEqual({ command: COMMAND });
  expect(unreadCallIn(text)?.reason).toMatch(/form is not the one/);
});

test('Python writes numbers, lists, tables and escapes', () => {
  const text = `[f(a=-1.5e3, b=[True, None, 'x'], c={"k": 1,}, d="\\x41\\u00e9\\n\\q")]`;
  expect(argumentsBy('pythonic', text)).toEqual({
    ...{ a: -1500, b: [true, null, 'x'], c: { k: 1 }, d: 'Aé\n\\q' },
  });
});

test('Python writes octal escapes of up to three digits', () => {
  const text = String.raw`[f(a="\033[1mx\0", b='\1\08\1234\777')]`;
  expect(argumentsBy('pythonic', text)).toEqual({ a: '\x1b[1mx\0', b: '\x01\x008S4\u01ff' });
});
test.each(['toString', 'constructor', '__proto__'])('%s is no value of Python', (word) => {
  expect(parseBy(`[bash(command=${word})]`, 'pythonic')).toEqual({ unread: `${word} is no value` });
});

test.each<[string, string, string, RegExp]>([
  [
    'a raw line break in JSON, as servers refuse it too',
    '<tool_call>{"name": "bash", "arguments": {"command": "ls\npwd"}}</tool_call>',
    '<tool_call>',
    /line break or tab stands as it is inside a JSON string; write it as \\n/,
  ],
  ['other JSON that is none', '<tool_call>{"name": "bash",}</tool_call>', '<tool_call>', /not valid JSON/],
  ['no name', '<tool_call>{"arguments": {}}</tool_call>', '<tool_call>', /names no function/],
  [
    'words of a text',
    `I look for [TOOL_CALLS] in the code.\n<tool_call>${JSON_CALL}</tool_call>`,
    '[TOOL_CALLS]',
    /names no function/,
  ],
  ['a name that is none', '<tool_call>{"name": "bash ls"}</tool_call>', '<tool_call>', /names no function/],
  ['nothing', '<tool_call></tool_call>', '<tool_call>', /empty/],
  [
    'a value that is not closed',
    '<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</tool_call>',
    '<tool_call>',
    /no closed <arg_value>/,
  ],
  ['words', '<tool_call>ls -a\npwd</tool_call>', '<tool_call>', /not valid JSON/],
  [
    'an id without a name',
    '<|tool_call_begin|>3<|tool_call_argument_begin|>{}<|tool_call_end|>',
    '<|tool_call_begin|>',
    /id names no function/,
  ],
  ['code instead of JSON', '<|python_tag|>bash.call(command="ls")', '<|python_tag|>', /not JSON/],
  ['a form that nobody reads', '<|tool_call>call:bash{}<tool_call|>', '<|tool_call>', /form is not/],
  [
    'a call that reads well, and that the server left in the text',
    `ok <tool_call>${JSON_CALL}</tool_call>`,
    '<tool_call>',
    /form is not the one that is read here/,
  ],
])('why a call is text: %s', (_, text, marker, reason) => {
  expect(unreadCallIn(text)).toEqual({ marker, reason: expect.stringMatching(reason) });
});

test.each(['I am done.', '', '{"a": 1}', '[1, 2]', 'a [link](x)', '<|channel|>final<|message|>done'])(
  'no call was begun in %j',
  (text) => expect(unreadCallIn(text)).toBeNull(),
);

test('every parser that a run can name is tested with calls of its family', () => {
  // Harmony's calls are channels, which answer.test.ts tests.
  const written = new Set([...WRITTEN.map(([parser]) => parser), 'auto', 'harmony']);
  expect(TOOL_PARSERS.filter((name) => !written.has(name))).toEqual([]);
});

test('a named parser reads no other forms', () => {
  const glm = '<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>';
  expect(parseToolCalls(glm, 'hermes')).toBeNull();
  expect(parseToolCalls(glm, 'kimi_k2')).toBeNull();
  expect(parseToolCalls(glm, 'glm')?.calls).toHaveLength(1);
});

const MARKERS = [
  '<tool_call>',
  '<tool_call>{"name":"',
  '<tool_call></tool_call>',
  '<function=a>',
  '<function=a><parameter=b>c</parameter>',
  '<arg_key>',
  '<tool_call>a<arg_key>b</arg_key>',
  '<|tool_call_begin|>',
  '<｜DSML｜tool_calls><｜DSML｜invoke name="',
  '<minimax:tool_call><invoke name="a">',
  '<minimax:tool_call><invoke name="a"><parameter name="b">',
  '[TOOL_CALLS]a{',
  '[TOOL_CALLS]a{"b":"',
  '<TOOLCALL>[{',
  '[bash(',
  "[bash(a='",
  '{"a":',
  '<|channel|>',
  '<|start|>assistant<|channel|>a<|message|>',
  '<|channel|>commentary to=',
  '```bash\n</think>',
];
test.each(MARKERS)('two megabytes of %s are read in linear time', (piece) => {
  const text = piece.repeat(Math.ceil((2 * 1024 ** 2) / piece.length));
  // CPU time of this thread, because other processes slow the machine down.
  const started = process.threadCpuUsage();
  parseToolCalls(text);
  unreadCallIn(text);
  const { user, system } = process.threadCpuUsage(started);
  expect((user + system) / 1000).toBeLessThan(2000);
});

test.each([
  ['<tool_call>', (call: string) => `<tool_call>${call}</tool_call>`],
  ['[TOOL_CALLS]', (call: string) => `[TOOL_CALLS][${call}]`],
  ['<TOOLCALL>', (call: string) => `<TOOLCALL>[${call}]</TOOLCALL>`],
  ['<|python_tag|>', (call: string) => `<|python_tag|>${call}`],
])('%s with values too deep to write again is an unread call', (marker, write) => {
  const text = write(`{"name":"bash","arguments":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`);
  expect(unreadCallIn(text)).toEqual({ marker, reason: 'its values are nested too deeply' });
  expect(parseToolCalls(text)).toBeNull();
});
