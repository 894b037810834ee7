import { S, strippedLines } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

const NAME = '([\\p{L}\\p{N}_:/.]+)';
const PATTERNS: [RegExp, string][] = [
  [new RegExp(`^\\[${S}*(?:OK|PASSED)${S}*\\]${S}+${NAME}`, 'u'), 'PASSED'],
  [new RegExp(`^\\[${S}*FAILED${S}*\\]${S}+${NAME}(?:${S}+\\(|$)`, 'u'), 'FAILED'],
  [new RegExp(`^\\[${S}*(?:SKIPPED|DISABLED)${S}*\\]${S}+${NAME}`, 'u'), 'SKIPPED'],
];
const NUMBER = /^\p{Nd}+$/u;
const COUNT = new RegExp(`(?<!\\p{Nd})\\p{Nd}+${S}+tests?[.,]`, 'u');
/** Matches the summary of a run. */
const ENDED = new RegExp(`\\[=+\\]${S}+\\p{Nd}+${S}+tests?${S}+from`, 'u');
const TOTALS = [
  [new RegExp(`\\[${S}*PASSED${S}*\\]${S}+(\\p{Nd}+)${S}+tests?`, 'u'), 'test_passed_', 'PASSED'],
  [new RegExp(`\\[${S}*FAILED${S}*\\]${S}+(\\p{Nd}+)${S}+tests?`, 'u'), 'test_failed_', 'FAILED'],
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
