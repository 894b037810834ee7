/** Thinking apart from the answer, as reasoning parsers of servers do it: one rule, for readers of calls and of fenced commands. */

const OPEN = '<think>';
const CLOSE = '</think>';

/**
 * Everything before the first `</think>`, where the answer begins with `<think>` or the template opened the thought: elsewhere
 * the word is text, such as a command may write. A thought that was never closed is all thought.
 *
 * @param opened whether the template opened a thought; null where that is unknown, as behind a chat server: then a `</think>`
 *   inside a block of code is text, and any other closes a thought
 */
export function splitThinking(
  text: string,
  opened: boolean | null,
): { reasoning: string | null; rest: string } {
  const begins = text.trimStart().startsWith(OPEN);
  if (!begins && opened === false) return { reasoning: null, rest: text };
  const close = begins || opened ? text.indexOf(CLOSE) : closeOutsideOfCode(text);
  if (close === -1)
    return begins || opened ? { reasoning: stripped(text), rest: '' } : { reasoning: null, rest: text };
  return {
    reasoning: stripped(text.slice(0, close)),
    rest: text.slice(close + CLOSE.length).replace(/^\n+/, ''),
  };
}

/** Does this end of a prompt open a thought? */
export const opensThinking = (promptEnd: string): boolean => promptEnd.trimEnd().endsWith(OPEN);

function stripped(thought: string): string {
  const text = thought.trim();
  return (text.startsWith(OPEN) ? text.slice(OPEN.length) : text).trim();
}

/** Walks the lines once; blocks of code open and close by lines of at least three backticks. */
function closeOutsideOfCode(text: string): number {
  if (!text.includes(CLOSE)) return -1;
  let ticks = 0;
  for (let at = 0; at <= text.length; ) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    let own = 0;
    while (text[at + own] === '`') own++;
    if (ticks > 0) {
      if (own >= ticks && text.slice(at + own, end).trim() === '') ticks = 0;
    } else if (own >= 3) ticks = own;
    else {
      const close = text.indexOf(CLOSE, at);
      if (close === -1) return -1;
      if (close < end) return close;
    }
    at = end + 1;
  }
  return -1;
}
