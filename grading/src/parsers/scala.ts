/** Reads ScalaTest under sbt as SWE-rebench V2 does. */
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { stripEnd, strippedLines } from '../text/pythontext.ts';
import { byStrippedLine, reading, STATUS } from './reader.ts';

const TEST = py`^\[info\]\s*- \s*(.+)`;
const SUITE = py`^\[info\]\s*(.*)`;
const TIME = ending`(?<=.)\s*\(\d+\s+(?:milli)?seconds?(?:,[^(]*)?\)`;
const PLAIN_TIME = ending`(?<=.)\s*\([^()]*\)`;
const SKIPS = ['!!! CANCELED', '!!! IGNORED'];

/** Reads `[info] - name *** FAILED *** (3 milliseconds)`. The stored name does not contain the suite. */
export const scalatest = byStrippedLine((line, found) => {
  const text = TEST.exec(line)?.[1];
  if (text === undefined) return;
  const failed = text.indexOf('*** FAILED ***');
  const skipped = Math.max(...SKIPS.map((word) => text.indexOf(word)));
  const name = withoutEnd(text, PLAIN_TIME);
  if (failed > 0) found.set(stripEnd(text.slice(0, failed)), 'FAILED');
  else if (skipped > 0) found.set(stripEnd(text.slice(0, skipped)), 'SKIPPED');
  else if (name !== text) found.set(name, 'PASSED');
});

const STARRED = py`\s\*\*\*\s(FAILED|ABORTED|IGNORED|CANCELED|PENDING)\s\*\*\*$`;

/** Stores `suite: name`. The suite is the last `[info]` line that is no test. An outcome counts only at the end of a line. */
export const scalatestSuites = reading((log, found) => {
  let suite = '';
  for (const line of strippedLines(log)) {
    const text = TEST.exec(line)?.[1];
    if (text === undefined) suite = SUITE.exec(line)?.[1] ?? suite;
    else {
      const word = STARRED.exec(text);
      const name = word ? stripEnd(text.slice(0, word.index)) : withoutEnd(text, TIME);
      found.set(`${suite}: ${name}`, word ? (STATUS[word[1] ?? ''] ?? '') : 'PASSED');
    }
  }
});
