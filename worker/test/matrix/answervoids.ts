/** Ways to void a rollout by what the model says, where it works by tool calls. It submits in the next turn. */
import type { ScriptInput } from '@swefarm/testkit';

type Turn = ScriptInput['conversations'][number]['variants'][number][number];

const DEEP = `{"command":"true","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
const calling = (name: string, text: string): Turn => ({ tool_calls: [{ name, arguments: text }] });

export const ANSWER_VOIDS: readonly { name: string; turn: Turn }[] = [
  { name: 'nothing', turn: { text: '' } },
  { name: 'arguments each in the last', turn: calling('bash', DEEP) },
  {
    name: 'a call in text, with arguments each in the last',
    turn: { text: `<tool_call>{"name":"bash","arguments":${DEEP}}</tool_call>` },
  },
  { name: 'a call in text that never ends', turn: { text: '<tool_call>{"name":"bash","arguments":{' } },
  { name: 'arguments that are no JSON', turn: calling('bash', '{"command":') },
  { name: 'arguments with half a character', turn: calling('bash', '{"command":"echo \\ud83d"}') },
  { name: 'a command with a byte of zero', turn: calling('bash', '{"command":"echo \\u0000"}') },
  { name: 'a tool that nobody has', turn: calling('__proto__', '{}') },
];
