/** Reads the counts that JavaScript runners print, as SWE-smith does: karma, jasmine, mocha's summary, turbo's tasks. */
import { before, indentOf, isSpace, linesOf, S, strip } from '../../text/pythontext.ts';
import { type Reader, statuses } from '../reader.ts';
import { addCounted, countIn } from './madeup.ts';
import { mocha } from './marks.ts';

/** Pattern of a number that does not begin inside a longer number. */
const N = '(?<!\\p{Nd})(\\p{Nd}+)';
const KARMA = [
  [new RegExp(`Executed${S}+(\\p{Nd}+)${S}+of${S}+\\p{Nd}+${S}+SUCCESS`, 'u'), 'karma_unit_test_', 'PASSED'],
  [
    new RegExp(`Executed${S}+\\p{Nd}+${S}+of${S}+\\p{Nd}+${S}+\\((\\p{Nd}+)${S}+FAILED\\)`, 'u'),
    'karma_unit_test_failed_',
    'FAILED',
  ],
  [
    new RegExp(`Executed${S}+\\p{Nd}+${S}+of${S}+\\p{Nd}+${S}+\\((\\p{Nd}+)${S}+skipped\\)`, 'u'),
    'karma_unit_test_skipped_',
    'SKIPPED',
  ],
] as const;

/** Takes the largest count of each status in the log. */
export const karma: Reader = (log) => {
  const most = KARMA.map(() => 0);
  for (const line of linesOf(log)) {
    for (const [at, [pattern]] of KARMA.entries()) {
      most[at] = Math.max(most[at] ?? 0, countIn(pattern.exec(line), 1));
    }
  }
  const found = statuses();
  for (const [at, [, prefix, status]] of KARMA.entries()) addCounted(found, prefix, status, most[at] ?? 0);
  return found;
};

const JASMINE = new RegExp(
  `${N}${S}+specs?,${S}+(\\p{Nd}+)${S}+failures?(?:,${S}+(\\p{Nd}+)${S}+pending${S}+specs?)?`,
  'u',
);

/** Reads only the first summary line. */
export const jasmine: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const match = JASMINE.exec(line);
    if (!match) continue;
    const [total, failed, pending] = [countIn(match, 1), countIn(match, 2), countIn(match, 3)];
    addCounted(found, 'jasmine_spec_', 'PASSED', total - failed - pending);
    addCounted(found, 'jasmine_spec_failed_', 'FAILED', failed);
    addCounted(found, 'jasmine_spec_pending_', 'SKIPPED', pending);
    break;
  }
  return found;
};

const PASSING = new RegExp(`${N}${S}+passing`, 'u');
const FAILING = new RegExp(`${N}${S}+failing`, 'u');

/** Reads mocha's lines. If there are none, reads the counts of mocha's summary. */
export const mochaOrSummary: Reader = (log, context) => {
  const found = mocha(log, context);
  if (found.size > 0) return found;
  addCounted(found, 'test_', 'PASSED', countIn(PASSING.exec(log), 1), 0);
  addCounted(found, 'test_failed_', 'FAILED', countIn(FAILING.exec(log), 1), 0);
  return found;
};

const TASKS = new RegExp(`Tasks:${S}+(\\p{Nd}+)${S}+successful,${S}+(\\p{Nd}+)${S}+total`, 'u');

/** Reads turbo's tasks (`package:test: …`). If there are none, reads the counts of turbo's summary. */
export const drizzleTurbo: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const task = turboTask(line);
    if (task !== null && !found.has(task)) found.set(task, 'PASSED');
    const start = before(line, ':');
    if (line.includes('ERROR') && start !== line && start.includes('test')) found.set(strip(start), 'FAILED');
  }
  if (found.size > 0) return found;
  for (const line of linesOf(log)) {
    const match = TASKS.exec(line);
    if (!match) continue;
    addCounted(found, 'turbo_task_', 'PASSED', countIn(match, 1), 0);
    addCounted(found, 'turbo_task_failed_', 'FAILED', countIn(match, 2) - countIn(match, 1), 0);
  }
  return found;
};

/** Returns the first word of a line, up to a colon after `:test`; null if the word has no `:test` or no colon follows. */
function turboTask(line: string): string | null {
  const from = indentOf(line);
  let end = from;
  while (end < line.length && !isSpace(line[end])) end++;
  const word = line.slice(from, end);
  const test = word.indexOf(':test', 1);
  if (test < 0) return null;
  while (isSpace(line[end])) end++;
  if (line[end] === ':') return word;
  const colon = word.lastIndexOf(':');
  return colon >= test + ':test'.length ? word.slice(0, colon) : null;
}

/** SWE-smith names a reader for jquery that does not exist, so the harness raises an exception on every log. */
export const missing: Reader = () => {
  throw new RangeError('the harness has no reader for this project');
};
