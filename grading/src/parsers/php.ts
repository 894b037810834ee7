import { isSpace, linesOf, S, strip, stripEnd, stripStart } from '../text/pythontext.ts';
import { beforeParen, dropBracketedTime } from './endings.ts';
import { setUnlessFailed } from './ranks.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

/** Status of each mark that phpunit --testdox prints. */
export const TESTDOX: Record<string, string> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };

/** Reads a line with the title of a suite, then one marked line for each test. */
export const phpunit: Reader = (log, { dialect }) => {
  const found = statuses();
  let suite = 'None';
  for (const line of linesOf(log)) {
    const title = beforeParen(line);
    if (title !== null && title.length > 1 && /^[\p{L}\p{N}_]/u.test(title)) {
      suite = title;
      continue;
    }
    const test = stripStart(line);
    const status = TESTDOX[test[0] ?? ''];
    if (status === undefined) continue;
    const name = stripStart(test.slice(1));
    const bare = dialect === 'swe-rebench-v2' ? strip(dropBracketedTime(name, '[', ']')) : name;
    found.set(`${suite} > ${bare}`, status);
  }
  return found;
};

const PEST: Record<string, string> = {
  '✓': 'PASSED',
  '✔': 'PASSED',
  '⨯': 'FAILED',
  x: 'FAILED',
  '-': 'SKIPPED',
};
const SECONDS = new RegExp(`${S}\\p{Nd}+(?:\\.\\p{Nd}+)?s$`, 'u');

/** Reads Pest: a mark, a name, and optional seconds. The name of a failed suite counts as a test. */
export const pest = byStrippedLine((line, found) => {
  const status = isSpace(line[1]) ? PEST[line[0] ?? ''] : undefined;
  if (status !== undefined) setUnlessFailed(found, withoutSeconds(strip(line.slice(1))), status);
  else if (line.startsWith('FAIL') && isSpace(line[4])) found.set(strip(line.slice(4)), 'FAILED');
  else if (line.includes('skipped')) found.set(withoutSeconds(line), 'SKIPPED');
});

function withoutSeconds(name: string): string {
  const from = Math.max(name.length - 32, 0);
  const match = SECONDS.exec(name.slice(from));
  return match ? stripEnd(name.slice(0, from + match.index)) : name;
}
