/** Parsers of swebench 4.1.0 for languages other than Python. */
import { ending, py, withoutEnd } from '../text/pattern.ts';
import { shortLines, strip } from '../text/pythontext.ts';
import { doctest } from './doctest.ts';
import { dropBracketTime, dropParenTime } from './endings.ts';
import { chartJs, marked, p5js, reactPdf } from './failures.ts';
import { gradle, maven } from './java.ts';
import { byStrippedLine, forms, type Reader, type Readers, reading, STATUS } from './reader.ts';
import { calypso, karma } from './suites.ts';

/** Reads `✓ name (12 ms)`. */
export const jest = forms([py`^(?<word>[✓✕○])\s(?<name>.+)`], {
  rename: (name, { dialect }) => (dialect === '5.0.2' ? strip(dropParenTime(name)) : dropParenTime(name)),
});
const jestJson = forms([py`^\[(?<word>PASSED|FAILED)\]\s(?<name>.+)`]);

const SKIPPED_OR_TIME = ending`(?<=.)\s(?:\[skipped\]|\d+\s*m?s?)`;
/** Reads `✓ name 12ms` and `↓ name [skipped]`. */
const vitest = forms([py`^(?<word>[✓×↓])\s(?<name>.+)`], {
  rename: (name) => withoutEnd(name, SKIPPED_OR_TIME),
});

const PATH = ending`\s+in\s+\S+`;
/** Reads `[ok]: name (12 ms)`. The line of a failed test also has ` in path` after the name. */
export const redis = forms([py`^\[(?<word>ok|err|skip|ignore)\]:\s(?<name>.+)`], {
  rename: (name, { status }) =>
    status === 'FAILED' ? withoutEnd(dropParenTime(name), PATH) : dropParenTime(name),
});

export const jq = forms([py`^(?<word>PASS|FAIL):\s(?<name>.+)`]);

const BEFORE_TIME = py`^(.*)\s\(`;
const GOOGLETEST = py`^.*\[\s*(OK|FAILED)\s*\]\s(.*)$`;
/** Reads `3: [       OK ] suite.name (0 ms)`. The name begins after the last `[ OK ]` or `[ FAILED ]` before the time. */
const googletest = byStrippedLine((line, found) => {
  const head = line.endsWith(')') ? BEFORE_TIME.exec(line)?.[1] : undefined;
  const [, word, name] = GOOGLETEST.exec(head ?? '') ?? [];
  if (word !== undefined && name !== undefined) found.set(name, STATUS[word] ?? '');
});

/** Reads `Name#test. … = 0.01 s = .`. The name ends at the last `. ` that precedes `=` and an outcome. */
const minitest = byStrippedLine((line, found) => {
  const outcome = Math.max(line.lastIndexOf('.'), line.lastIndexOf('F'), line.lastIndexOf('E'));
  const equals = outcome > 0 ? line.lastIndexOf('=', outcome - 1) : -1;
  const name = equals > 2 ? line.lastIndexOf('. ', equals - 2) : -1;
  if (name > 0) found.set(line.slice(0, name), line[outcome] === '.' ? 'PASSED' : 'FAILED');
});

/** Reads `name ....F`. The name ends at the last blank before dots; an F after the dots marks a failure. */
const cucumber = forms([py`^(?<name>.*) \.+(?<word>[.F])`]);

/** Returns a reader for a repository whose pull requests use different runners. @throws RangeError if the runner is unknown */
const byPullRequest =
  (part: number, readers: Readers): Reader =>
  (log, context) => {
    const { instance_id } = context.instance;
    const reader = readers[instance_id.split('-').at(part) ?? ''];
    if (!reader) throw new RangeError(`no test runner is known for ${instance_id}`);
    return reader(log, context);
  };

const SUITE = py`^(?=.*\)$)(\w.+) \(.+\)$`;
/** Pattern of a line of phpunit --testdox. */
export const TESTDOX = py`^\s*(?<word>[✔✘↩])\s*(?<name>.*)`;

/** Reads a line with the title of a suite, then one marked line for each test. */
const phpunit = reading((log, found, { dialect }) => {
  let suite = 'None';
  for (const line of shortLines(log)) {
    suite = SUITE.exec(line)?.[1] ?? suite;
    const { word, name = '' } = TESTDOX.exec(line)?.groups ?? {};
    if (word === undefined) continue;
    const bare = dialect === 'swe-rebench-v2' ? strip(dropBracketTime(name)) : name;
    found.set(`${suite} > ${bare}`, STATUS[word] ?? '');
  }
});

export const SWEBENCH: Readers = {
  ant: forms([py`^\[junit\]\s+\[(?<word>PASS|FAIL|ERR)\]\s+(?<name>.+)`]),
  calypso,
  cargo: forms([py`^test\s+(?<name>\S+)\s+\.\.\.\s+(?<word>ok|FAILED)$`]),
  chart_js: chartJs,
  cucumber,
  doctest,
  googletest,
  gotest: forms([py`^--- (?<word>PASS|FAIL|SKIP): (?=.*\)$)(?<name>.+) \(.+\)$`]),
  gradle_custom: gradle,
  immutable_js: byPullRequest(-1, { 2005: jestJson, 2006: jest }),
  jekyll: byPullRequest(1, {
    8047: minitest,
    8167: minitest,
    8761: cucumber,
    8771: cucumber,
    9141: minitest,
  }),
  jest,
  jest_json: jestJson,
  jq,
  karma,
  marked,
  maven,
  micropython_test: forms([py`^(?<word>pass|FAIL|skip)\s+(?<name>.+)`]),
  minitest,
  p5js,
  phpunit,
  react_pdf: reactPdf,
  redis,
  rspec_transformed_json: forms([py`^(?<name>.+) - (?<word>passed|failed)`]),
  ruby_unit: forms([py`^(?:test: )?(?<name>.+):\s+(?<word>\.|[EFO](?!\w))`]),
  tap: forms([py`^(?<word>ok|not ok) \d+ (?<name>.+)`]),
  vitest,
};
