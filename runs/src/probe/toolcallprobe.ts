import { findUnreadCall } from '@swefarm/policy';
import type { Message, PolicyConfig } from '@swefarm/shared';

export const NUDGE = 'You called no tool. Call the tool bash now, with {"command": "ls"} as its arguments.';

/** Maximum number of answers until the model must have called a tool. */
export const MOST_ANSWERS = 8;

/** `cut`: the token limit ended the answer, perhaps in the middle of a tool call. */
export type ProbeReply = { message: Message; cut: boolean };

/**
 * Explains why no answer has a readable tool call. `begun`: an answer begins a call that cannot be read. `silent`: no answer begins a call.
 * `cut`: the token limit ended every answer.
 */
export function describeMissingCall(
  { token_mode: mode, tool_parser: parser }: PolicyConfig,
  answers: readonly ProbeReply[],
): { why: 'begun' | 'silent' | 'cut'; detail: string; remedy: string } {
  const whole = answers.flatMap(({ message, cut }) => (cut ? [] : [message]));
  const detail = `no tool call could be read in ${answers.length} answers: `;
  if (whole.length === 0) {
    return {
      why: 'cut',
      detail: `${detail}each was cut off at its limit of tokens`,
      remedy: 'raise --max-tokens, so that an answer has room for a thought and a call',
    };
  }
  const [unread] = whole.flatMap((answer) => findUnreadCall(answer, mode === 'token-in') ?? []);
  const found = unread
    ? `one begins a call with ${unread.marker}, and ${unread.reason}`
    : `the last one begins: ${JSON.stringify((whole.at(-1)?.content ?? '').slice(0, 80))}`;
  const ours = `name the model's form of calls with --tool-parser (now ${parser})`;
  const theirs =
    'serve the model with its own tool-call parser (vLLM: --enable-auto-tool-choice --tool-call-parser NAME)';
  return {
    why: unread ? 'begun' : 'silent',
    detail: detail + found,
    remedy: `${mode === 'token-in' ? ours : theirs}, or use --action fenced`,
  };
}
