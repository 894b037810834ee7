/** Log readers of SWE-smith by the names in its table of projects (`grading/data/swesmith.json`). */
import { withoutEscapes } from '../../text/escapes.ts';
import { py } from '../../text/pattern.ts';
import { strip, stripEnd } from '../../text/pythontext.ts';
import { dropParenTime } from '../endings.ts';
import { forms, type Readers, reading, wholeLineForms } from '../reader.ts';
import { jest, jq, redis } from '../swebench.ts';
import { catch2 } from './catch2.ts';
import { COUNTS, mochaOrSummary } from './counts.ts';
import { FRAMEWORKS } from './frameworks.ts';
import { gradleXml, surefire } from './java.ts';
import { LINES } from './lines.ts';
import { PYTHON } from './python.ts';
import { rubyTests } from './ruby.ts';
import { TOTALS } from './totals.ts';

/** Every line `- text` counts as a skipped test, and every numbered line counts as a failed test. */
const mocha = forms([py`^(?<word>[✓✔✖-])\s(?<name>.+)`, [py`^\d+\)\s+(?<name>.+)`, 'FAILED']], {
  rename: dropParenTime,
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: Python's splitlines() ends a line at these
const LINES_OF_PYTHON = /[^\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+/g;

/** Reads `cargo test`, including doc tests: `test path::name ... ok`. */
const cargoTest = reading((log, found) => {
  for (const [raw] of log.matchAll(LINES_OF_PYTHON)) {
    const line = raw.startsWith('test ') ? raw.slice('test '.length) : raw;
    const status = line.includes('... ok') ? 'PASSED' : line.includes('... FAILED') ? 'FAILED' : null;
    const dots = line.lastIndexOf(' ... ');
    if (status !== null) found.set(strip(dots < 0 ? line : line.slice(0, dots)), status);
  }
});

export const SMITH: Readers = {
  ...PYTHON,
  'go-test': forms([
    py`^--- (?<word>PASS|FAIL): (?<name>\S+)`,
    // Matches the line of a package too: `FAIL	example.org/pkg	0.01s`.
    [py`^FAIL:?\s?(?<name>.+?)\s`, 'FAILED'],
    py`^--- (?<word>SKIP): (?<name>\S+)`,
  ]),
  'cargo-test': cargoTest,
  'maven-surefire': surefire,
  'gradle-junit-xml': gradleXml,
  jest,
  mocha,
  // The first parenthesis, which begins a time or a count of tests, ends the name.
  vitest: forms([py`^(?<word>[✓❯✗○])\s(?<name>[^(]*)`], { rename: strip }),
  ...COUNTS,
  'mocha-or-summary': mochaOrSummary(mocha),
  // vitest in react-pdf's repository: `✓ name 12ms`. The time may be missing.
  'react-pdf': wholeLineForms(
    [
      py`^\s*(?<word>✓)\s(?<name>.*)\s\d+ms`,
      py`^\s*(?<word>✗)\s(?<name>.*)\s\d+ms`,
      py`^\s*(?<word>✖)\s(?<name>.*)`,
      py`^\s*(?<word>✓)\s(?<name>.*)`,
    ],
    { rename: strip },
  ),
  // Node's runner in marked's repository. A line without a time is no test.
  marked: wholeLineForms([py`^\s*(?<word>[✖✔])\s(?<name>.*?)\s\([.\d]+ms\)`], { rename: strip }),
  ...FRAMEWORKS,
  catch2,
  ...LINES,
  ...TOTALS,
  // pikiwidb: `[ok]: name (12 ms)`. The time is a part of the name.
  'redis-tcl': forms([py`^\[(?<word>ok|err)\]:\s+(?<name>.+)`]),
  // i2pd prints `Running test-gost` before each program. The first failure ends the command.
  i2pd: forms([[py`^Running (?<name>test-\S+)`, 'PASSED']]),
  fastllm: forms([[py`^test (?<name>\S+) finished!`, 'PASSED']]),
  'async-profiler': forms([py`^(?<word>PASS|FAIL)\s+\[\d+/\d+\]\s+(?<name>\S+)`]),
  // PlatformIO's table of environments
  platformio: forms([py`^(?<name>\S+)\s+(?<word>SUCCESS|FAILED)\s+\d`]),
  // Bun: `(pass) suite > name [0.12ms]`. If the line ends in `]`, the first `[` ends the name.
  bun: forms([py`^\((?<word>pass|fail)\)\s+(?:(?=.*\]$)(?<name>.[^[]*)\[|(?<name>.+))`], {
    rename: stripEnd,
  }),
  // pycdc: `*** name: PASS (3)`. An expected failure (XFAIL) counts as passed.
  pycdc: forms(
    [
      [py`^\*\*\*\s+(?<name>\S+):\s+(?:PASS|XFAIL)\s`, 'PASSED'],
      py`^\*\*\*\s+(?<name>\S+):\s+(?<word>FAIL)\s`,
    ],
    {
      clean: withoutEscapes,
    },
  ),
  'c-make-check': jq,
  'c-valkey': redis,
  // VirtualClient (.NET): `Passed name [12 ms]`. A blank ends the name.
  'csharp-virtualclient': forms([py`^(?<word>Passed|Failed|Skipped)\S*\s+(?<name>\S+)`]),
  ruby: rubyTests,
};
