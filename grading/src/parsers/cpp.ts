/** Reads pytest in C++ projects, and Botan, as SWE-rebench V2 does. */
import { py } from '../text/pattern.ts';
import { shortLines, strip, stripEnd } from '../text/pythontext.ts';
import { byStrippedLine, reading, setUnlessFailed } from './reader.ts';

const WORDS = py`\s(PASSED|FAILED|SKIPPED|ERROR)`;
const TITLE = py`^_+\s+([^\s_].*?[^\s_]|[^\s_])\s+_+$`;

/** Reads pytest's `path::name STATUS` and stores `name`. Below the header FAILURES, a title `___ name ___` marks a known test as failed. */
export const cppPytest = reading((log, found) => {
  let failures = false;
  for (const line of shortLines(log)) {
    if (line.startsWith('=') && line.includes(' FAILURES ')) failures = true;
    if (failures) {
      const title = line.length < 4096 ? TITLE.exec(strip(line))?.[1] : undefined;
      if (title !== undefined && found.has(title)) found.set(title, 'FAILED');
      continue;
    }
    const match = WORDS.exec(line);
    if (match) setUnlessFailed(found, lastPart(line.slice(0, match.index)), match[1] ?? '');
  }
});

const lastPart = (name: string): string =>
  strip(name.slice(name.lastIndexOf('::') + (name.includes('::') ? 2 : 1)));

const RAN = py`\sran\s+(\d+)\s+tests\s+in\s+[\d.]+\s+(?:msec|sec)\s+(.+)$`;
const DOTS = py`\s\.\.\.\s+(.+)$`;
const NUMBER = py`^\[\d+/\d+\]\s+`;

/** Reads Botan's `name ran N tests in T msec …` and `[1/2] name ... ok`. Any other line with an outcome word is stored whole as a name. */
export const botan = byStrippedLine((line, found) => {
  const ran = RAN.exec(line);
  const dots = ran ? null : DOTS.exec(line);
  if (ran) {
    const name = `${stripEnd(line.slice(0, ran.index))} ran ${ran[1]} tests ${ran[2]}`;
    found.set(name, /failed/i.test(ran[2] ?? '') ? 'FAILED' : 'PASSED');
  } else if (dots) {
    const name = stripEnd(line.slice(0, dots.index).replace(NUMBER, ''));
    if (name !== '') found.set(name, outcomeIn(dots[1] ?? '') ?? 'ERROR');
  } else {
    const status = outcomeIn(line);
    if (status !== null) found.set(line, status);
  }
});

function outcomeIn(text: string): string | null {
  if (/\bskipped\b/i.test(text)) return 'SKIPPED';
  if (/\bfail(?:ed|ure)?\b/i.test(text)) return 'FAILED';
  return /\b(?:ok|passed)\b/i.test(text) ? 'PASSED' : null;
}
