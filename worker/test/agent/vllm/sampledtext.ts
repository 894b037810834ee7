/** Texts and forms of answers that a model samples after a thought that its template opened. */
import { type Message, tryParseJson } from '@swefarm/shared';

/** Returns the text whose reading is the message. */
export function sampledText({
  reasoning_content: thought,
  content,
  tool_calls: calls = [],
}: Message): string {
  const head = `${thought ?? ''}\n</think>\n\n${content ?? ''}`;
  const values = calls.map(({ function: called }) => tryParseJson(called.arguments));
  if (values.every((value) => typeof value === 'object')) {
    const written = calls.map(({ function: { name } }, index) =>
      ['<tool_call>', JSON.stringify({ name, arguments: values[index] }), '</tool_call>'].join('\n'),
    );
    return [head, ...written].join('\n');
  }
  // Of the forms that the policy reads, this one gives back calls whose arguments are broken.
  const written = calls.map(
    ({ function: { name, arguments: text } }) =>
      `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${text}<｜tool▁call▁end｜>`,
  );
  return `${head}<｜tool▁calls▁begin｜>${written.join('')}<｜tool▁calls▁end｜>`;
}

const WORDS = "[a-zA-Z0-9 .,_/'-]";

/** Returns a regular expression of an answer of any words: a thought, perhaps a text, and one to three calls of the tool. */
export const callingForm = (tool: string): string =>
  `${WORDS}{0,30}\\n</think>\\n\\n(${WORDS}{1,20}\\n)?(<tool_call>\\n\\{"name": "${tool}", "arguments": \\{"command": "${WORDS}{1,30}"\\}\\}\\n</tool_call>){1,3}`;
