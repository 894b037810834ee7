/** The turn client of mode `token-in` against a small endpoint in which each character is a token. */

import type { Message, ToolDefinition } from '@swefarm/shared';
import { PolicyConfig } from '@swefarm/shared';
import { expect, test } from 'vitest';
import type { Post } from './endpoint/post.ts';
import { openTurnClient } from './openturnclient.ts';
import { NO_LIMITS } from './turnsampling.ts';

const END = '\u0001';
const CONFIG = PolicyConfig.parse({ urls: [], model: 'm', token_mode: 'token-in', stream: 'off' });
const TOOLS: ToolDefinition[] = [
  { type: 'function', function: { name: 'bash', description: 'Run one command.', parameters: {} } },
];
const CHAT: Message[] = [{ role: 'user', content: 'Which files are there?' }];
const CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>';

/** Writes calls as Hermes and Qwen do. */
const write = ({ role, content, tool_calls: calls = [] }: Message): string =>
  `${role}:${content}${calls.map(({ function: { name, arguments: args } }) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`).join('')}${END}`;

/** Answers every prompt with one text; throws `faults` in order when the template is requested to render a call. */
function endpoint(answer: string, faults: Error[] = [], writeMessage = write) {
  const ids = (text: string) => Array.from(text, (character) => character.charCodeAt(0));
  const routes: string[] = [];
  const post: Post = async (route, pieces) => {
    routes.push(route);
    const body = JSON.parse(pieces.map(String).join(''));
    if (route === 'completions') {
      const token_ids = ids(answer + END);
      const logprobs = { token_logprobs: token_ids.map(() => -0.5) };
      return json({ choices: [{ text: answer, finish_reason: 'stop', token_ids, logprobs }] });
    }
    if (route === 'detokenize') return json({ prompt: String.fromCharCode(...body.tokens) });
    const messages: Message[] = body.messages;
    const fault = messages.some((message) => message.tool_calls) ? faults.shift() : undefined;
    if (fault) throw fault;
    return json({
      tokens: ids(messages.map(writeMessage).join('') + (body.add_generation_prompt ? 'A:' : '')),
    });
  };
  return { post, routes };
}
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

const open = () => openTurnClient(CONFIG, { rolloutId: 'run.one.0', limits: NO_LIMITS });

test('the form that the template writes has priority over markers of other families', async () => {
  const { post } = endpoint(`Other models write [TOOL_CALLS] or <|python_tag|>; here it is:\n${CALL}`);
  const { message } = await (await open()).ask(CHAT, TOOLS, post);
  expect(message).toMatchObject({
    content: 'Other models write [TOOL_CALLS] or <|python_tag|>; here it is:',
    tool_calls: [{ function: { name: 'bash', arguments: '{"command":"ls"}' } }],
  });
});

test('a call without markers is read although its arguments contain a marker of another family', async () => {
  const bare = ({ role, content, tool_calls: calls = [] }: Message): string =>
    `${role}:${content}${calls.map(({ function: { name, arguments: args } }) => `{"name": "${name}", "parameters": ${args}}`).join('')}${END}`;
  const command = 'grep -rn "<tool_call>" .';
  const { post } = endpoint(JSON.stringify({ name: 'bash', parameters: { command } }), [], bare);
  const { message } = await (await open()).ask(CHAT, TOOLS, post);
  expect(message.tool_calls).toMatchObject([
    { function: { name: 'bash', arguments: JSON.stringify({ command }) } },
  ]);
});

test("an error of the template's endpoint does not lose a received answer", async () => {
  const resets = [new Error('reset'), new Error('reset')];
  const { post, routes } = endpoint(`I leave out [TOOL_CALLS].\n${CALL}`, resets);
  const client = await open();
  await expect(client.ask(CHAT, TOOLS, post)).rejects.toThrow('reset');
  expect([client.storedTokens() > CALL.length, client.generatedTokens() > CALL.length]).toEqual([true, true]);
  await expect(client.ask(CHAT, TOOLS, post)).rejects.toThrow('reset');
  const { message } = await client.ask(CHAT, TOOLS, post);
  expect(message.tool_calls).toHaveLength(1);
  expect(routes.filter((route) => route === 'completions')).toHaveLength(1);
  expect(client.storedTokens()).toBe(0);
});
