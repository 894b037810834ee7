/** Thinking apart from the answer, as reasoning parsers of servers do it: everything before `</think>`. */

const OPEN = '<think>';
const CLOSE = '</think>';

/** A thought that was never closed is all thought; chat templates that open it themselves leave only the closing tag. */
export function splitThinking(text: string): { reasoning: string | null; rest: string } {
  const close = text.indexOf(CLOSE);
  const opened = text.trimStart().startsWith(OPEN);
  if (close === -1) return opened ? { reasoning: stripped(text), rest: '' } : { reasoning: null, rest: text };
  return {
    reasoning: stripped(text.slice(0, close)),
    rest: text.slice(close + CLOSE.length).replace(/^\n+/, ''),
  };
}

function stripped(thought: string): string {
  const text = thought.trim();
  return (text.startsWith(OPEN) ? text.slice(OPEN.length) : text).trim();
}
