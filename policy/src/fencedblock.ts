/**
 * Finds the fenced block with the command in an answer, for the agent and the exports. The text is untrusted and may be long, so one pass
 * reads the lines without backtracking.
 */

/** `start` and `end`: indices of the block in the text, with its fences. */
export type FencedBlock = { command: string; start: number; end: number };

const OPENERS = ['bash', 'mswea_bash_command'];

/**
 * Finds the only block that is opened by ```bash (or ```mswea_bash_command) and closed by at least as many backticks, on separate lines.
 * Blocks of other languages count as text. `malformed`: why there is not exactly one such block.
 */
export function findFencedBlock(content: string): FencedBlock | { malformed: string } {
  let at = 0;
  let found: FencedBlock | null = null;
  let open: { fence: number; start: number; ticks: number } | null = null;
  while (at <= content.length) {
    const newline = content.indexOf('\n', at);
    const end = newline === -1 ? content.length : newline;
    const ticks = countBackticks(content, at, end);
    if (open && ticks >= open.ticks && isBlank(content, at + ticks, end)) {
      if (found) return { malformed: 'it contains more than one ```bash block' };
      const command = content.slice(open.start, Math.max(open.start, at - 1));
      found = { command, start: open.fence, end };
      open = null;
    } else if (!open && ticks >= 3 && OPENERS.includes(infoOf(content, at + ticks, end))) {
      open = { fence: at, start: end + 1, ticks };
    }
    at = end + 1;
  }
  if (open) return { malformed: 'its ```bash block is not closed by a line of three backticks' };
  if (found === null) return { malformed: 'it contains no ```bash block' };
  return found.command.trim() === '' ? { malformed: 'its ```bash block is empty' } : found;
}

function countBackticks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && text.charCodeAt(at) === 0x60) at++;
  return at - from;
}

function isBlank(text: string, from: number, end: number): boolean {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x09 && code !== 0x0d) return false;
  }
  return true;
}

/** Returns the language of an opening fence; '' for a line longer than any known fence. */
function infoOf(text: string, from: number, end: number): string {
  return end - from > 80 ? '' : text.slice(from, end).trim();
}
