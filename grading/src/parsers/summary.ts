/** pytest's short summary as trainers' harnesses read it: R2E-Gym, NeMo Gym for rows of R2E-Gym, SWE-Lego's reader in verifiers, SWE-bench-Live. */
import { before, fields, linesOf, SPACE, strip } from '../text/pythontext.ts';
import { pytest } from './pytest.ts';
import { type Reader, statuses } from './reader.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOR = /\x1b\[[0-9;]*m|\r/g;
const HEADER = 'short test summary info';

/**
 * R2E-Gym (agentica 353348a): the text between the first two headers. A name is what follows the first `::`, its other `::` become
 * dots; a line without one has the empty name. The first status word anywhere in the line counts, in this order.
 */
export const r2e: Reader = (log) => {
  const found = statuses();
  const parts = log.replace(COLOR, '').split(HEADER, 2);
  for (const line of linesOf(strip(parts[1] ?? ''))) {
    const status = ['PASSED', 'FAILED', 'ERROR'].find((word) => line.includes(word));
    if (status === undefined) continue;
    const at = line.indexOf('::');
    const name = at < 0 ? '' : line.slice(at + 2).replaceAll('::', '.');
    found.set(status === 'PASSED' ? name : before(name, ' - '), status);
  }
  return found;
};

const NEMO_WORDS = new Set(['PASSED', 'FAILED', 'ERROR', 'XFAIL', 'SKIPPED']);

/** NeMo Gym's generic agent (07d6b0d) for rows of R2E-Gym that have lists: the first two fields of any line, once ` - ` is a blank. */
export const r2eNemo: Reader = (log) => {
  const found = statuses();
  for (const line of linesOf(log)) {
    const [status, name] = fields(line.replaceAll(' - ', ' '), 2);
    if (status !== undefined && name !== undefined && NEMO_WORDS.has(status)) found.set(name, status);
  }
  return found;
};

const WORD = new RegExp(`^(PASSED|FAILED|ERROR|XFAIL|XPASS)[${SPACE}]+`);
const REASON = new RegExp(`[${SPACE}]-[${SPACE}]`);

/** SWE-Lego, as verifiers a60a606 reads it: the whole name, up to a dash between blanks. */
export const pytestWholeNames: Reader = (log) => {
  const found = statuses();
  for (const raw of linesOf(log)) {
    const line = strip(raw);
    const match = WORD.exec(line);
    if (!match) continue;
    const rest = line.slice(match[0].length);
    const reason = rest.slice(1).search(REASON);
    const name = strip(reason < 0 ? rest : rest.slice(0, reason + 1));
    if (name !== '') found.set(name, match[1] ?? '');
  }
  return found;
};

const LIVE: Record<string, string> = { PASSED: 'pass', SKIPPED: 'skip' };

/** SWE-bench-Live (70ec57e): swebench's pytest, and whatever is neither passed nor skipped failed, expected failures too. */
export const pytestLive: Reader = (log, context) => {
  const found = statuses();
  for (const [name, status] of pytest(log, context)) found.set(name, LIVE[status] ?? 'fail');
  return found;
};
