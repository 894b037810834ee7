/** Reads OCaml's alcotest and dune, and two other formats, as SWE-rebench V2 does. */
import { withoutEscapes } from '../text/escapes.ts';
import { fields, S, SPACE, strip, strippedLines } from '../text/pythontext.ts';
import { setWorst } from './ranks.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

const ALCOTEST = new RegExp(`^\\[([A-Z]+)\\]${S}+(.+)$`);
const ALCOTEST_WORDS: Record<string, string> = {
  OK: 'PASSED',
  PASS: 'PASSED',
  PASSED: 'PASSED',
  FAIL: 'FAILED',
  FAILED: 'FAILED',
  SKIP: 'SKIPPED',
  TODO: 'SKIPPED',
};

/** Reads `[OK]  suite  0  name` and stores `suite 0 name`. */
export const alcotest = byStrippedLine((line, found) => {
  const match = ALCOTEST.exec(line);
  const test = match && numbered(match[2] ?? '');
  if (!match || !test) return;
  const status = ALCOTEST_WORDS[match[1] ?? ''] ?? 'ERROR';
  if (status !== 'PASSED' || !found.has(test)) found.set(test, status);
});

/** Returns suite, number and name, joined by blanks. The first number with text on both sides divides suite and name. */
function numbered(text: string): string | null {
  const words = new RegExp(`[^${SPACE}]+`, 'g');
  for (const match of text.matchAll(words)) {
    const name = strip(text.slice(match.index + match[0].length));
    if (match.index > 0 && name !== '' && /^\p{Nd}+$/u.test(match[0]))
      return `${strip(text.slice(0, match.index))} ${match[0]} ${name}`;
  }
  return null;
}

const RUNNING = /^Running\[(\p{Nd}+)\]:/u;
const OUTPUT = /^Output\[(\p{Nd}+)\]:/u;
const BROKEN = /fail|error|exception|crash|fatal/i;

/** Reads dune. Each program that ran is a test; words such as `fail` in the output of the program decide the status. */
export const dune: Reader = (log) => {
  const found = statuses();
  const programs = new Map<string, string>();
  let current: string | null = null;
  for (const line of strippedLines(log)) {
    const running = RUNNING.exec(line)?.[1];
    const output = OUTPUT.exec(line)?.[1];
    if (running !== undefined) {
      current = null;
      const program = fields(line)
        .map((word) => word.replace(/[()]/g, ''))
        .find((word) => word.startsWith('./') && word.endsWith('.exe'));
      if (program !== undefined) programs.set(running, program.slice(program.lastIndexOf('/') + 1));
    } else if (output !== undefined) {
      current = programs.get(output) ?? null;
      if (current !== null) setWorst(found, current, 'PASSED');
    } else if (current !== null) {
      if (BROKEN.test(line)) setWorst(found, current, 'FAILED');
      else if (/skip/i.test(line)) setWorst(found, current, 'SKIPPED');
    }
  }
  return found;
};

const BRACKETS = new RegExp(`^\\[([\\p{L}\\p{N}_]+)\\]${S}+(.+)$`, 'u');

function bracketStatus(word: string): string | null {
  if (/^(?:OK|PASS|PASSED|SUCCESS)$/i.test(word)) return 'PASSED';
  if (/^(?:SKIP\w*|TODO|PENDING|DISABLED)$/i.test(word)) return 'SKIPPED';
  return /^(?:FAIL\w*|ERROR|EXCEPTION|CRASH|FATAL|KO|PANIC)$/i.test(word) ? 'FAILED' : null;
}

/** Reads `[OK] name`. Each run of blanks in a name becomes one blank. */
export const brackets = byStrippedLine((line, found) => {
  const match = BRACKETS.exec(line);
  const status = match && bracketStatus(match[1] ?? '');
  if (match && status !== null) setWorst(found, fields(match[2] ?? '').join(' '), status);
});

const PREFIX = new RegExp(`^(PASSED|FAILED|SKIPPED|ERROR)${S}+(.+)$`);
const TWO_BLANKS = new RegExp(`${S}${S}`);

/** Reads `PASSED name  anything`. Two blanks end the name. */
export const statusFirst = byStrippedLine(
  (line, found) => {
    const match = PREFIX.exec(line);
    if (!match) return;
    const text = match[2] ?? '';
    const end = text.search(TWO_BLANKS);
    setWorst(found, end < 0 ? text : text.slice(0, end), match[1] ?? '');
  },
  (log) => withoutEscapes(log, ' '),
);
