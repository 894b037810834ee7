import { AgentConfig, Toolset } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { localRun } from '../../test/agent/localrun.ts';
import { type Answer, play, scriptedShell, toolCalls } from '../../test/agent/scripted.ts';

const string = { type: 'string' };
const tool = (name: string, run: unknown, properties: object = {}, required: string[] = []) => ({
  ...{ name, description: '', run },
  parameters: { type: 'object', properties, required },
});
const EDITOR = tool(
  'str_replace_editor',
  'str_replace_editor',
  { command: string, path: string, view_range: { type: 'array' } },
  ['command', 'path'],
);
const toolset = Toolset.parse({
  name: 'own',
  tools: [
    tool('run', 'bash', { command: string }),
    EDITOR,
    tool('think', 'think', { thought: string }),
    tool(
      'count',
      { script: 'echo "$ARG_words" | wc -w; echo "$ARG_limit"' },
      { words: string, limit: { type: 'integer' } },
      ['words'],
    ),
    tool('finish', 'submit'),
  ],
});
const FINISH = toolCalls(['finish', '{}']);
const withTools = (answers: Answer[], shell = scriptedShell(() => ({ output: 'out\n' })), more = {}) =>
  play(answers, { ...AgentConfig.parse({ action: 'tool', toolset: [toolset], ...more }) }, shell);
const json = JSON.stringify;
const localShell = () => {
  const shell = scriptedShell(() => undefined);
  return {
    ...shell,
    run: (script: string, { maxOutputBytes }: { maxOutputBytes: number }) => localRun(script, maxOutputBytes),
  };
};

test('the tools of a toolset are offered, and prompts name them', async () => {
  const { trajectory, exit_status } = await withTools(['what?', FINISH]);
  expect(trajectory.tools?.map((one) => one.function.name)).toEqual([
    'run',
    'str_replace_editor',
    'think',
    'count',
    'finish',
  ]);
  expect(trajectory.tools?.[3]?.function.parameters).toMatchObject({ required: ['words'] });
  expect(exit_status).toBe('submitted');
});
test('each call but a submit leaves one record, and its own observation', async () => {
  const shell = localShell();
  const calls = toolCalls(
    ['run', json({ command: 'echo a' })],
    ['think', json({ thought: 'hm' })],
    ['count', json({ words: "it's $HOME two", limit: '5' })],
    ['str_replace_editor', json({ command: 'view', path: '/etc/passwd', view_range: '[1, 1]' })],
    ['str_replace_editor', json({ command: 'view', path: 'etc' })],
  );
  const { trajectory } = await withTools([calls, FINISH], shell);
  expect(trajectory.turns[0]?.commands.map(({ command, exit_code }) => [command, exit_code])).toEqual([
    ['echo a', 0],
    [`think ${json({ thought: 'hm' })}`, 0],
    [`count ${json({ words: "it's $HOME two", limit: '5' })}`, 0],
    ['str_replace_editor view /etc/passwd', 0],
    ['str_replace_editor view etc', 1],
  ]);
  const shown = trajectory.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  expect(shown[2]).toContain('\n3\n5\n');
  expect(shown[3]).toMatch(/^Here's the result of running `cat -n` on \/etc\/passwd:\n {5}1\troot:/);
  expect(shown[4]).toContain('/testbed/etc');
});
test.each([
  ['count', '{}', /needs the argument "words"/],
  ['count', '{"words":["a"]}', /"words" to be of type string/],
  ['count', '{"words":"a","limit":"many"}', /"limit" to be of type integer/],
  ['str_replace_editor', '{"command":"view"}', /needs the argument "path"/],
  ['run', '{}', /a call of run needs a "command"/],
  ['submit_solution', '{}', /the tools are run, str_replace_editor, think, count and finish/],
])('%s with %s is malformed, and nothing runs', async (name, args, why) => {
  const shell = scriptedShell(() => ({ output: '' }));
  const { trajectory } = await withTools(
    [toolCalls(['run', '{"command":"ls"}'], [name, args]), FINISH],
    shell,
  );
  expect(trajectory.messages[3]?.content).toMatch(why);
  expect(shell.commands).toEqual([]);
});
test('a script may submit by the sentinel', async () => {
  const shell = scriptedShell(() => ({ output: 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\npatch' }));
  const end = await withTools([toolCalls(['count', '{"words":"a"}'])], shell);
  expect(end).toMatchObject({ exit_status: 'submitted', submission: 'patch' });
});
test('an edit that times out says so, and shows no part of the file', async () => {
  const shell = scriptedShell(() => ({ exitCode: null, note: 'timed_out', output: 'half of a file' }));
  const view = toolCalls(['str_replace_editor', '{"command":"view","path":"/a"}']);
  const { trajectory } = await withTools([view, FINISH], shell);
  expect(trajectory.messages[3]?.content).toMatch(/still running after 60 seconds/);
  expect(trajectory.messages[3]?.content).not.toContain('half');
  expect(trajectory.turns[0]?.commands[0]).toMatchObject({ note: 'timed_out', exit_code: null });
});
test('the same call again and again is warned about', async () => {
  const view = toolCalls(['str_replace_editor', '{"command":"view","path":"/none"}']);
  const { trajectory } = await withTools([view, view, FINISH], localShell(), { collapse_limit: 2 });
  expect(trajectory.messages[5]?.content).toMatch(/2 times in a row/);
});
test('action patch: the answer is the submission, and the model is asked once', async () => {
  const config = { action: 'patch', patch_source: 'submission' };
  const end = await play(['Well.\n<patch>\n--- a/x\n+++ b/x\n</patch>'], config);
  expect(end).toMatchObject({ exit_status: 'submitted', submission: '--- a/x\n+++ b/x\n' });
  const fenced = await play(['no', '<think>```diff\nwrong\n```</think>```diff\n--- a/x\n```'], config);
  expect(fenced).toMatchObject({ submission: '--- a/x\n' });
  expect(fenced.trajectory.messages[3]?.content).toMatch(/no patch between/);
});
