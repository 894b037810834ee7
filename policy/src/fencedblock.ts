/**
 * Finds the fenced block with the command in an answer, for the agent and the exports. The text is untrusted and may be long, so one pass
 * reads the fences without backtracking.
 */

/** `start` and `end`: indices of the block in the text, with its fences. */
export type FencedBlock = { command: string; start: number; end: number };

const OPENERS = ['bash', 'mswea_bash_command'];

/**
 * Finds the only block that is opened by ```bash (or ```mswea_bash_command) and closed by at least as many backticks, on separate lines.
 * Blocks of other languages count as text. `malformed`: why there is not exactly one such block.
 */
export function findFencedBlock(content: string): FencedBlock | { malformed: string } {
  let found: FencedBlock | null = null;
  let open: { fence: number; start: number; ticks: number } | null = null;
  for (const { at, end, ticks, rest } of fencedLines(content)) {
    if (open && ticks >= open.ticks && /^[ \t\r]*$/.test(rest)) {
      if (found) return { malformed: 'it contains more than one ```bash block' };
      const command = content.slice(open.start, Math.max(open.start, at - 1));
      found = { command, start: open.fence, end };
      open = null;
    } else if (!open && rest.length <= LONGEST_INFO && OPENERS.includes(rest.trim())) {
      open = { fence: at, start: end + 1, ticks };
    }
  }
  if (open) return { malformed: 'its ```bash block is not closed by a line of three backticks' };
  if (found === null) return { malformed: 'it contains no ```bash block' };
  return found.command.trim() === '' ? { malformed: 'its ```bash block is empty' } : found;
}

/** Maximum number of characters after the backticks of an opening fence. */
const LONGEST_INFO = 80;

/** Yields the lines that begin with at least three backticks: `ticks` backticks, followed by `rest`. */
function* fencedLines(text: string): Generator<{ at: number; end: number; ticks: number; rest: string }> {
  for (let at = text.indexOf('```'); at !== -1; at = text.indexOf('```', at)) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    if (at === 0 || text[at - 1] === '\n') {
      let ticks = 3;
      while (text[at + ticks] === '`') ticks++;
      yield { at, end, ticks, rest: text.slice(at + ticks, end) };
    }
    at = end;
  }
}
