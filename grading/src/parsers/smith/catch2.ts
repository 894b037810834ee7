/** Reads Catch2's XML. If the log has none, reads lines `name ... PASSED`, or else the counts of the summary. */
import { py } from '../../text/pattern.ts';
import { strip } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { forward } from './forward.ts';
import { addCounted, countIn } from './madeup.ts';

export const catch2: Reader = (log) => {
  for (const stage of [xmlCases, dottedLines, caseCounts, allPassed]) {
    const found = stage(log);
    if (found.size > 0) return found;
  }
  return statuses();
};

const CASE = new RegExp(py`<TestCase\s+name="([^"]+)"`, 'gu');
const RESULT = new RegExp(py`<OverallResult\s+success="(true|false)"`, 'gu');

function xmlCases(log: string): Map<string, string> {
  const found = statuses();
  const result = forward(log, new RegExp(RESULT));
  const pattern = new RegExp(CASE);
  for (let test = pattern.exec(log); test; test = pattern.exec(log)) {
    const open = log.indexOf('>', pattern.lastIndex);
    const end = open < 0 ? null : result(open + 1);
    if (!end) break;
    found.set(test[1] ?? '', end[1] === 'true' ? 'PASSED' : 'FAILED');
    pattern.lastIndex = end.index + end[0].length;
  }
  return found;
}

const DIVIDER = /[.:[\]]/g;
const OUTCOME = new RegExp(py`\.\.\.\s*(PASSED|FAILED)`, 'iuy');

/** Reads `name ... PASSED`. A name begins at the first start of a line after the last dot, colon or bracket; it may have several lines. */
function dottedLines(log: string): Map<string, string> {
  const found = statuses();
  const divider = new RegExp(DIVIDER);
  let from = 0;
  for (let hit = divider.exec(log); hit; hit = divider.exec(log)) {
    OUTCOME.lastIndex = hit.index;
    const outcome = OUTCOME.exec(log);
    const between = log.slice(from, hit.index);
    const line = from === 0 ? 0 : between.indexOf('\n') + 1;
    const opens = from === 0 || line > 0;
    from = hit.index + (outcome?.[0].length ?? 1);
    divider.lastIndex = from;
    if (!outcome || !opens || line === between.length) continue;
    found.set(strip(between.slice(line)), outcome[1]?.toUpperCase() === 'PASSED' ? 'PASSED' : 'FAILED');
  }
  return found;
}

const COUNTS = py`test cases:\s*(\d+)\s*\|\s*(\d+)\s*passed\s*\|\s*(\d+)\s*failed`;

function caseCounts(log: string): Map<string, string> {
  const found = statuses();
  const match = COUNTS.exec(log);
  addCounted(found, 'test_passed_', 'PASSED', countIn(match, 2));
  addCounted(found, 'test_failed_', 'FAILED', countIn(match, 3));
  return found;
}

const ALL_PASSED = new RegExp(py`All tests passed\s*\(`, 'gu');
const CASES = new RegExp(py`(?<!\d)(\d+)\s+test cases?\)`, 'gu');

function allPassed(log: string): Map<string, string> {
  const found = statuses();
  const cases = forward(log, new RegExp(CASES));
  const newline = forward(log, /\n/g);
  for (const open of log.matchAll(ALL_PASSED)) {
    const from = open.index + open[0].length;
    const count = cases(from);
    if (!count) break;
    if (count.index > (newline(from)?.index ?? log.length)) continue;
    addCounted(found, 'test_passed_', 'PASSED', countIn(count, 1));
    break;
  }
  return found;
}
