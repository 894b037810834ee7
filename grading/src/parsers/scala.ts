/** Reads ScalaTest and munit under sbt as SWE-rebench V2 does. */
import { withoutEscapes } from '../text/escapes.ts';
import { S, strip, stripEnd, strippedLines } from '../text/pythontext.ts';
import { dropSuffix } from './endings.ts';
import { byStrippedLine, type Reader, statuses } from './reader.ts';

const INFO = '[info]';
const TIME = new RegExp(`^\\(\\p{Nd}+${S}+(?:milli)?seconds?(?:,.*)?\\)$`, 'u');
const PLAIN_TIME = /^\([^)]*\)$/;

/** Returns the text after `[info] - `, or null. */
function testText(line: string): string | null {
  const rest = line.startsWith(INFO) ? strip(line.slice(INFO.length)) : '';
  return rest.startsWith('- ') ? strip(rest.slice(2)) : null;
}

const SKIPS = ['!!! CANCELED', '!!! IGNORED'];

/** Reads `[info] - name *** FAILED *** (3 milliseconds)`. The stored name does not contain the suite. */
export const scalatest = byStrippedLine((line, found) => {
  const text = testText(line);
  if (text === null) return;
  const failed = text.indexOf('*** FAILED ***');
  const skipped = Math.max(...SKIPS.map((word) => text.indexOf(word)));
  if (failed > 0) found.set(stripEnd(text.slice(0, failed)), 'FAILED');
  else if (skipped > 0) found.set(stripEnd(text.slice(0, skipped)), 'SKIPPED');
  else {
    const name = dropSuffix(text, '(', PLAIN_TIME);
    if (name !== text) found.set(name, 'PASSED');
  }
});

const MUNIT = new RegExp(`^([+x])${S}+(.+)${S}\\p{Nd}+(?:\\.\\p{Nd}+)?(?:s|ms|μs|ns)$`, 'u');
const COLOR = /\[\d{1,3}m/g;

/** Reads munit: `+ name 0.1s` and `x name 0.1s`. Colour codes may lack the escape character. */
export const munit = byStrippedLine((line, found) => {
  const match = MUNIT.exec(strip(line.replace(COLOR, '')));
  const name = strip(match?.[2] ?? '');
  if (name !== '') found.set(name, match?.[1] === '+' ? 'PASSED' : 'FAILED');
}, withoutEscapes);

const WORDS: Record<string, string> = {
  FAILED: 'FAILED',
  ABORTED: 'ERROR',
  IGNORED: 'SKIPPED',
  CANCELED: 'SKIPPED',
  PENDING: 'SKIPPED',
};
const STARRED = new RegExp(`${S}\\*\\*\\*${S}(FAILED|ABORTED|IGNORED|CANCELED|PENDING)${S}\\*\\*\\*$`);

/** Stores `suite: name`. The suite is the last `[info]` line that is no test. An outcome counts only at the end of a line. */
export const scalatestSuites: Reader = (log) => {
  const found = statuses();
  let suite = '';
  for (const line of strippedLines(log)) {
    if (!line.startsWith(INFO)) continue;
    const text = testText(line);
    if (text === null) {
      suite = strip(line.slice(INFO.length));
      continue;
    }
    const word = STARRED.exec(text);
    const name = word ? stripEnd(text.slice(0, word.index)) : dropSuffix(text, '(', TIME);
    found.set(`${suite}: ${name}`, WORDS[word?.[1] ?? ''] ?? 'PASSED');
  }
  return found;
};
