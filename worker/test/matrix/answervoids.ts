/** Attempts to avoid a verdict by the answers of the model in tool mode. The model submits in the next turn. */
import type { TurnInput } from '@swefarm/testkit';

const DEEP = `{"command":"true","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
const calling = (name: string, text: string): TurnInput => ({ tool_calls: [{ name, arguments: text }] });

export const ANSWER_VOIDS: Readonly<Record<string, TurnInput>> = {
  nothing: { text: '' },
  'nested arguments': calling('bash', DEEP),
  'a call in text with nested arguments': {
    text: `<tool_call>{"name":"bash","arguments":${DEEP}}</tool_call>`,
  },
  'a call in text that never ends': { text: '<tool_call>{"name":"bash","arguments":{' },
  'arguments that are no JSON': calling('bash', '{"command":'),
  'arguments with a lone surrogate': calling('bash', '{"command":"echo \\ud83d"}'),
  'a command with a byte of zero': calling('bash', '{"command":"echo \\u0000"}'),
  'an unknown tool': calling('__proto__', '{}'),
};
