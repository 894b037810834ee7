/** Swift's XCTest and .NET's console, as SWE-rebench V2 reads them. */
import { isSpace, linesOf, SPACE, strip } from '../text/pythontext.ts';
import { setUnlessFailed } from './ranks.ts';
import { type Reader, statuses } from './reader.ts';

const S = `[${SPACE}]`;
const SWIFT = new RegExp(`^Test Case '([^']+)'${S}+(passed|failed)${S}+\\([0-9.]+${S}+seconds\\)$`);

/** `Test Case 'Suite.test' passed (0.001 seconds)`. */
export const xctest: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const match = SWIFT.exec(strip(raw));
    if (match) found.set(match[1] ?? '', match[2] === 'passed' ? 'PASSED' : 'FAILED');
  }
  return found;
};

const XUNIT = '[xUnit.net ';
const FAIL = ' [FAIL]';

/** `  Passed name [12 ms]`, and `[xUnit.net 00:00:00.52]     name [FAIL]`. */
export const dotnet: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    if (line.startsWith(XUNIT) && line.endsWith(FAIL)) {
      const name = strip(line.slice(line.indexOf(']') + 1, -FAIL.length));
      if (name !== '') found.set(name, 'FAILED');
      continue;
    }
    const word = isSpace(raw[0])
      ? ['Passed', 'Failed', 'Skipped'].find((one) => line.startsWith(one))
      : undefined;
    if (word === undefined || !isSpace(line[word.length])) continue;
    const rest = strip(line.slice(word.length));
    const open = rest.indexOf(' [');
    if (open < 0 && word !== 'Skipped') continue;
    const name = strip(open < 0 ? rest : rest.slice(0, open));
    if (name !== '') setUnlessFailed(found, name, word.toUpperCase());
  }
  return found;
};
