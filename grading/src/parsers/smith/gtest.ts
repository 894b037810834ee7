import { py } from '../../text/pattern.ts';
import { strippedLines } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const NAME = '([\\p{L}\\p{N}_:/.]+)';
const PATTERNS: [RegExp, string][] = [
  [py`^\[\s*(?:OK|PASSED)\s*\]\s+${NAME}`, 'PASSED'],
  [py`^\[\s*FAILED\s*\]\s+${NAME}(?:\s+\(|$)`, 'FAILED'],
  [py`^\[\s*(?:SKIPPED|DISABLED)\s*\]\s+${NAME}`, 'SKIPPED'],
];
const NUMBER = py`^\d+$`;
const COUNT = py`(?<!\d)\d+\s+tests?[.,]`;
/** Matches the summary of a run. */
const ENDED = py`\[=+\]\s+\d+\s+tests?\s+from`;
const TOTALS = [
  [py`\[\s*PASSED\s*\]\s+(\d+)\s+tests?`, 'test_passed_', 'PASSED'],
  [py`\[\s*FAILED\s*\]\s+(\d+)\s+tests?`, 'test_failed_', 'FAILED'],
] as const;

export const gtest: Reader = (log) => {
  const found = statuses();
  for (const line of strippedLines(log)) {
    for (const [pattern, status] of PATTERNS) {
      const name = pattern.exec(line)?.[1];
      if (name === undefined) continue;
      if (!NUMBER.test(name) && !COUNT.test(line)) found.set(name, status);
      break;
    }
  }
  if (found.size > 0 || !ENDED.test(log)) return found;
  for (const [pattern, prefix, status] of TOTALS)
    addCounted(found, prefix, status, countIn(pattern.exec(log), 1));
  return found;
};
