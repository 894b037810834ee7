/** Reads the counts that JavaScript runners print, as SWE-smith does: karma, jasmine, mocha's summary, turbo's tasks. */
import { py } from '../../text/pattern.ts';
import { before, linesOf, shortLines, strip } from '../../text/pythontext.ts';
import { type Reader, type Readers, reading, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';

/** Pattern of a number that does not begin inside a longer number. */
const N = String.raw`(?<!\d)(\d+)`;
const KARMA = [
  [py`Executed\s+(\d+)\s+of\s+\d+\s+SUCCESS`, 'karma_unit_test_', 'PASSED'],
  [py`Executed\s+\d+\s+of\s+\d+\s+\((\d+)\s+FAILED\)`, 'karma_unit_test_failed_', 'FAILED'],
  [py`Executed\s+\d+\s+of\s+\d+\s+\((\d+)\s+skipped\)`, 'karma_unit_test_skipped_', 'SKIPPED'],
] as const;

/** Takes the largest count of each status in the log. */
const karma: Reader = (log) => {
  const most = KARMA.map(() => 0);
  for (const line of shortLines(log)) {
    for (const [at, [pattern]] of KARMA.entries()) {
      most[at] = Math.max(most[at] ?? 0, countIn(pattern.exec(line), 1));
    }
  }
  const found = statuses();
  for (const [at, [, prefix, status]] of KARMA.entries()) addCounted(found, prefix, status, most[at] ?? 0);
  return found;
};

const JASMINE = py`${N}\s+specs?,\s+(\d+)\s+failures?(?:,\s+(\d+)\s+pending\s+specs?)?`;

/** Reads only the first summary line. */
const jasmine = reading((log, found) => {
  for (const line of shortLines(log)) {
    const match = JASMINE.exec(line);
    if (!match) continue;
    const [total, failed, pending] = [countIn(match, 1), countIn(match, 2), countIn(match, 3)];
    addCounted(found, 'jasmine_spec_', 'PASSED', total - failed - pending);
    addCounted(found, 'jasmine_spec_failed_', 'FAILED', failed);
    addCounted(found, 'jasmine_spec_pending_', 'SKIPPED', pending);
    break;
  }
});

const PASSING = py`${N}\s+passing`;
const FAILING = py`${N}\s+failing`;

/** Reads mocha's lines. If there are none, reads the counts of mocha's summary. */
export const mochaOrSummary =
  (mocha: Reader): Reader =>
  (log, context) => {
    const found = mocha(log, context);
    if (found.size > 0) return found;
    addCounted(found, 'test_', 'PASSED', countIn(PASSING.exec(log), 1), 0);
    addCounted(found, 'test_failed_', 'FAILED', countIn(FAILING.exec(log), 1), 0);
    return found;
  };

const TASKS = py`Tasks:\s+(\d+)\s+successful,\s+(\d+)\s+total`;

/** Matches the first word of a line if it contains `:test`: up to a colon after the word, or else up to the last colon inside. */
const TASK = py`^\s*(\S+?:test\S*)\s*:`;

/** Reads turbo's tasks (`package:test: …`). If there are none, reads the counts of turbo's summary. */
const drizzleTurbo = reading((log, found) => {
  for (const line of linesOf(log)) {
    const task = TASK.exec(line)?.[1];
    if (task !== undefined && !found.has(task)) found.set(task, 'PASSED');
    const start = before(line, ':');
    if (line.includes('ERROR') && start !== line && start.includes('test')) found.set(strip(start), 'FAILED');
  }
  if (found.size > 0) return;
  for (const line of shortLines(log)) {
    const match = TASKS.exec(line);
    if (!match) continue;
    addCounted(found, 'turbo_task_', 'PASSED', countIn(match, 1), 0);
    addCounted(found, 'turbo_task_failed_', 'FAILED', countIn(match, 2) - countIn(match, 1), 0);
  }
});

/** SWE-smith names a reader for jquery that does not exist, so the harness raises an exception on every log. */
const missing: Reader = () => {
  throw new RangeError('the harness has no reader for this project');
};

export const COUNTS: Readers = { karma, jasmine, 'drizzle-turbo': drizzleTurbo, 'qunit-missing': missing };
