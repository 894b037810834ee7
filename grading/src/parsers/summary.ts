/** Reads pytest's short summary as R2E-Gym, NeMo Gym, verifiers (SWE-Lego) and SWE-bench-Live do. */
import { py } from '../text/pattern.ts';
import { before, linesOf, strip, stripEnd } from '../text/pythontext.ts';
import { pytest } from './pytest.ts';
import { forms, reading } from './reader.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
const COLOR = /\x1b\[[0-9;]*m|\r/g;
const HEADER = 'short test summary info';

/**
 * Reads the text between the first two headers as R2E-Gym does (agentica 353348a). The name is the text after the first `::`, with dots
 * for further `::`; in a line without `::` the name is empty. The status word may be anywhere in the line.
 */
export const r2e = reading((log, found) => {
  const parts = log.replace(COLOR, '').split(HEADER, 2);
  for (const line of linesOf(strip(parts[1] ?? ''))) {
    const status = ['PASSED', 'FAILED', 'ERROR'].find((word) => line.includes(word));
    if (status === undefined) continue;
    const at = line.indexOf('::');
    const name = at < 0 ? '' : line.slice(at + 2).replaceAll('::', '.');
    found.set(status === 'PASSED' ? name : before(name, ' - '), status);
  }
});

/** Reads the first two fields of a line, with ` - ` as a blank, as NeMo Gym (07d6b0d) does for R2E-Gym rows with lists of tests. */
export const r2eNemo = forms([py`^(?<word>PASSED|FAILED|ERROR|XFAIL|SKIPPED)\s+(?<name>\S+)`], {
  clean: (line) => line.replaceAll(' - ', ' '),
});

/** Reads whole names, up to a dash between blanks, as verifiers (a60a606) does for SWE-Lego. */
export const pytestWholeNames = forms(
  [py`^(?<word>PASSED|FAILED|ERROR|XFAIL|XPASS)\s+(?<name>\S.*?)(?:\s-\s|$)`],
  { rename: stripEnd },
);

const LIVE: Record<string, string> = { PASSED: 'pass', SKIPPED: 'skip' };

/** Reads swebench's pytest as SWE-bench-Live does (70ec57e). Every status except PASSED and SKIPPED fails, including XFAIL. */
export const pytestLive = reading((log, found, context) => {
  for (const [name, status] of pytest(log, context)) found.set(name, LIVE[status] ?? 'fail');
});
