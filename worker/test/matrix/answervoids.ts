/** Attempts to avoid a verdict by the answers of the model in tool mode. It submits in the next turn. */
import type { ScriptInput } from '@swefarm/testkit';

type Turn = ScriptInput['conversations'][number]['variants'][number][number];

const DEEP = `{"command":"true","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
const calling = (name: string, text: string): Turn => ({ tool_calls: [{ name, arguments: text }] });

export const ANSWER_VOIDS: readonly { name: string; turn: Turn }[] = [
  { name: 'nothing', turn: { text: '' } },
  { name: 'nested arguments', turn: calling('bash', DEEP) },
  {
    name: 'a call in text with nested arguments',
    turn: { text: `<tool_call>{"name":"bash","arguments":${DEEP}}</tool_call>` },
  },
  { name: 'a call in text that never ends', turn: { text: '<tool_call>{"name":"bash","arguments":{' } },
  { name: 'arguments that are no JSON', turn: calling('bash', '{"command":') },
  { name: 'arguments with a lone surrogate', turn: calling('bash', '{"command":"echo \\ud83d"}') },
  { name: 'a command with a byte of zero', turn: calling('bash', '{"command":"echo \\u0000"}') },
  { name: 'an unknown tool', turn: calling('__proto__', '{}') },
];
