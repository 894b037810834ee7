/** Reads Swift's XCTest and .NET's console as SWE-rebench V2 does. */
import { isSpace, S, strip } from '../text/pythontext.ts';
import { setUnlessFailed } from './ranks.ts';
import { byLine, byStrippedLine } from './reader.ts';

const SWIFT = new RegExp(`^Test Case '([^']+)'${S}+(passed|failed)${S}+\\([0-9.]+${S}+seconds\\)$`);

/** Reads `Test Case 'Suite.test' passed (0.001 seconds)`. */
export const xctest = byStrippedLine((line, found) => {
  const match = SWIFT.exec(line);
  if (match) found.set(match[1] ?? '', match[2] === 'passed' ? 'PASSED' : 'FAILED');
});

const XUNIT = '[xUnit.net ';
const FAIL = ' [FAIL]';

/** Reads `  Passed name [12 ms]` and `[xUnit.net 00:00:00.52]     name [FAIL]`. */
export const dotnet = byLine((raw, found) => {
  const line = strip(raw);
  if (line.startsWith(XUNIT) && line.endsWith(FAIL)) {
    const name = strip(line.slice(line.indexOf(']') + 1, -FAIL.length));
    if (name !== '') found.set(name, 'FAILED');
    return;
  }
  const word = isSpace(raw[0])
    ? ['Passed', 'Failed', 'Skipped'].find((one) => line.startsWith(one))
    : undefined;
  if (word === undefined || !isSpace(line[word.length])) return;
  const rest = strip(line.slice(word.length));
  const open = rest.indexOf(' [');
  if (open < 0 && word !== 'Skipped') return;
  const name = strip(open < 0 ? rest : rest.slice(0, open));
  if (name !== '') setUnlessFailed(found, name, word.toUpperCase());
});
