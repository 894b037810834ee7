/** What the probe says to a model that calls no tool, and of one that called none in the end. */
import { type Message, type PolicyConfig, unreadCall } from '@swefarm/shared';

export const NUDGE = 'You called no tool. Call the tool bash now, with {"command": "ls"} as its arguments.';

/** Why no answer of this talk holds a call that could be read, as far as the answers tell. */
export function callTold(
  { token_mode: mode, tool_parser: parser }: PolicyConfig,
  messages: readonly Message[],
): { detail: string; remedy: string } {
  const answers = messages.filter(({ role }) => role === 'assistant');
  const [unread] = answers.flatMap((answer) => unreadCall(answer, mode === 'token-in') ?? []);
  const told = unread
    ? `one begins a call with ${unread.marker}, and ${unread.reason}`
    : `the last one begins: ${JSON.stringify((answers.at(-1)?.content ?? '').slice(0, 80))}`;
  const ours = `name the model's form of calls with --tool-parser (now ${parser})`;
  const theirs =
    'serve the model with its own tool-call parser (vLLM: --enable-auto-tool-choice --tool-call-parser NAME)';
  return {
    detail: `no tool call could be read in ${answers.length} answers: ${told}`,
    remedy: `${mode === 'token-in' ? ours : theirs}, or use --action fenced`,
  };
}
