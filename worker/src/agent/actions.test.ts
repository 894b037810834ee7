import type { Message } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { toolCalls } from '../../test/agent/scripted.ts';
import { type Action, type ActionConfig, parseAction, toolDefinitions } from './actions.ts';

const FENCED = { action: 'fenced', toolset: [] } as const satisfies ActionConfig;
const TOOL = { action: 'tool', toolset: [] } as const satisfies ActionConfig;
const fenced = (content: string | null): Action => parseAction({ role: 'assistant', content }, FENCED);
const called = (...calls: [name: string, args: string][]): Action =>
  parseAction({ role: 'assistant', content: null, ...toolCalls(...calls) }, TOOL);
const commandsOf = (action: Action): string[] | string =>
  'malformed' in action
    ? action.malformed
    : action.calls.map((call) =>
        call.kind === 'bash'
          ? call.command
          : call.kind === 'submit'
            ? `submit:${call.submission}`
            : call.tool.name,
      );

/** CPU time of this thread, which the load of the machine does not affect. */
function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

describe('one fenced block', () => {
  test.each([
    ['plain', 'I look.\n```bash\nls -la\n```', ['ls -la']],
    ['the other opener, text behind', '```mswea_bash_command\nls\n```\nThat shows it.', ['ls']],
    ['several lines, kept as they are', '```bash\ncat <<X\n  a\n\nX\n```\n', ['cat <<X\n  a\n\nX']],
    ['blanks after the fences', '```bash  \r\nls\n```  \r\n', ['ls']],
    ['blocks of other languages are text', '```python\nprint(1)\n```\n```bash\nls\n```\n```\nx\n```', ['ls']],
    [
      'a longer fence may contain shorter ones',
      '````bash\ncat <<X\n```\ncode\n```\nX\n````',
      ['cat <<X\n```\ncode\n```\nX'],
    ],
    [
      'a fence with a language inside does not close',
      '```bash\ncat <<X\n```python\nX\n```',
      ['cat <<X\n```python\nX'],
    ],
    [
      'blocks in thoughts are not commands',
      '<think>maybe\n```bash\nrm -rf /\n```\n</think>\n```bash\nls\n```',
      ['ls'],
    ],
    [
      'the end tag of a thought inside a command is text',
      '```bash\ncat <<X\n</think>\nX\n```',
      ['cat <<X\n</think>\nX'],
    ],
    [
      'a thought that the template opened, with a block',
      'maybe\n```bash\nrm -rf /\n```\n</think>\n```bash\ncat <<X\n</think>\nX\n```',
      ['cat <<X\n</think>\nX'],
    ],
    [
      'a block that the thought left unclosed',
      'I could wipe it:\n```bash\nrm -rf build\n</think>\nNo, look first.\n```bash\nls\n```',
      ['ls'],
    ],
  ])('%s', (_, content, commands) => expect(commandsOf(fenced(content))).toEqual(commands));

  test('if thoughts are separate, the end tag is text everywhere', () => {
    const message: Message = { role: 'assistant', content: '```bash\nls\n```\nThen </think> is closed.' };
    expect(commandsOf(parseAction(message, FENCED, true))).toEqual(['ls']);
    expect(commandsOf(parseAction({ ...message, reasoning_content: 'hm' }, FENCED))).toEqual(['ls']);
    const begun = { ...message, content: '<think>\n```bash\nrm\n```\n</think>\n```bash\nls\n```' };
    expect(commandsOf(parseAction(begun, FENCED, true))).toEqual(['ls']);
  });

  test.each([
    ['no block', 'I am done.', /no ```bash block/],
    ['nothing at all', null, /no ```bash block/],
    ['two blocks', '```bash\nls\n```\n```bash\npwd\n```', /more than one/],
    ['not closed', '```bash\nls\n', /not closed/],
    ['empty', '```bash\n```', /empty/],
    ['blank', '```bash\n  \n\n```', /empty/],
    ['another language only', '```python\nprint(1)\n```', /no ```bash block/],
    ['fence within a line', 'run ```bash ls``` now', /no ```bash block/],
  ])('malformed: %s', (_, content, reason) => {
    const action = fenced(content);
    expect('malformed' in action && action.malformed).toMatch(reason);
  });

  test.each([
    ['10 MB of text', 'a'.repeat(10 * 1024 ** 2)],
    ['10 MB in one block', `\`\`\`bash\n${'x'.repeat(10 * 1024 ** 2)}\n\`\`\``],
    ['10 MB of openers', '```bash\n'.repeat(1_300_000)],
    ['10 MB of blanks after an opener', `\`\`\`bash${' '.repeat(10 * 1024 ** 2)}`],
    ['100,000 backticks', '`'.repeat(100_000)],
    ['a million lines of backticks', '```\n'.repeat(1_000_000)],
  ])('%s is read in linear time', (_, content) => {
    const part = cpuMs(() => fenced(content.slice(0, content.length / 8)));
    const whole = cpuMs(() => fenced(content));
    // For eight times the text, linear work takes 8 times as long, quadratic work 64 times.
    expect(whole).toBeLessThan(24 * Math.max(part, 20));
  });
});

describe('tool calls', () => {
  test('several run in order, submit_solution included', () => {
    const action = called(['bash', '{"command":"ls"}'], ['submit_solution', '{}']);
    expect(commandsOf(action)).toEqual(['ls', 'submit:null']);
    expect('calls' in action && action.calls.map((call) => call.toolCallId)).toEqual(['call_0', 'call_1']);
  });
  test('submit_solution takes no arguments, or a patch', () => {
    expect(commandsOf(called(['submit_solution', '']))).toEqual(['submit:null']);
    expect(commandsOf(called(['submit_solution', '{"submission":"diff"}']))).toEqual(['submit:diff']);
  });
  test.each([
    ['no call', [], /no tool/, false],
    ['cut JSON', [['bash', '{"command": "ls']], /not a JSON object/, true],
    ['Infinity', [['bash', 'Infinity']], /not a JSON object/, true],
    ['a list', [['bash', '["ls"]']], /not a JSON object/, true],
    ['null', [['bash', 'null']], /not a JSON object/, true],
    ['half a character', [['bash', '{"command":"echo \\ud83d"}']], /well-formed/, true],
    [
      'arrays each in the last',
      [['bash', `{"command":"ls","a":${'['.repeat(9000)}${']'.repeat(9000)}}`]],
      /well-formed/,
      true,
    ],
    ['no command', [['bash', '{"cmd":"ls"}']], /"command"/, false],
    ['a command that is a number', [['bash', '{"command":5}']], /"command"/, false],
    ['a blank command', [['bash', '{"command":" "}']], /"command"/, false],
    ['an unknown tool', [['python', '{}']], /no tool "python"/, false],
    [
      'one bad call among good ones',
      [
        ['bash', '{"command":"ls"}'],
        ['bash', '{'],
      ],
      /not a JSON object/,
      true,
    ],
  ] as const)('malformed: %s', (_, calls, reason, badArguments) => {
    const action = called(...(calls as unknown as [string, string][]));
    expect(action).toMatchObject({ malformed: expect.stringMatching(reason), badArguments });
  });
  test.each([
    [
      '<tool_call>{"name":"bash","arguments":{"command":"ls\npwd"}}</tool_call>',
      /a line break .* write it as/,
    ],
    ['I look. <tool_call>{"name":"bash"', /could not be read: it is not valid JSON/],
    ['<|tool_calls_section_begin|>functions.bash', /could not be read: it contains no/],
    ['<tool_call>{"name":"bash","arguments":{"command":"ls"}}</tool_call>', /could not be read: its form/],
    ['<think>perhaps <tool_call>?</think>no', /^it calls no tool/],
    ['a tool call', /^it calls no tool/],
  ])('the model gets the reason why a call is unreadable: %s', (content, reason) => {
    const action = parseAction({ role: 'assistant', content }, TOOL);
    expect(action).toMatchObject({ malformed: expect.stringMatching(reason), badArguments: false });
  });
  test('a long tool name is shortened in the message', () => {
    const action = called([`x${'\n'.repeat(100_000)}`, '{}']);
    expect('malformed' in action && action.malformed.length).toBeLessThan(300);
  });
  test('10 MB of arguments are read in linear time', () => {
    const read = () => {
      called(['bash', '{'.repeat(10 * 1024 ** 2)]);
      called(['bash', JSON.stringify({ command: 'x'.repeat(10 * 1024 ** 2) })]);
    };
    expect(cpuMs(read)).toBeLessThan(1500);
  });
});

test('tools are offered in tool mode only; a submission only if it is the patch', () => {
  expect(toolDefinitions({ ...FENCED, patch_source: 'tree' })).toEqual([]);
  const parameters = (source: 'tree' | 'submission') =>
    toolDefinitions({ ...TOOL, patch_source: source })[1]?.function.parameters;
  expect(parameters('tree')).toMatchObject({ properties: {}, required: [] });
  expect(parameters('submission')).toMatchObject({ required: ['submission'] });
});
