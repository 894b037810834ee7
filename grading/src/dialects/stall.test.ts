import { expect, test } from 'vitest';
import { DIALECTS, readerRow } from '../corpus.fixture.ts';
import { parserNames, readLog } from './registry.ts';

const instance = (parser: string) =>
  readerRow({
    instance_id: parser === 'jekyll' ? 'j__j-9141' : 'i__i-2006',
    version: parser === 'lighthouse' ? '10.0' : parser === 'next' ? '1.27' : '1.0',
  });

/** Texts of 200,000 characters that make backtracking patterns quadratic or worse. */
const SIZE = 200_000;
const fill = (piece: string): string => piece.repeat(Math.ceil(SIZE / piece.length));
const HOSTILE: Record<string, string> = {
  'one line of blanks': `PASSED ${fill(' ')}x`,
  'blank lines': fill('\n'),
  'one line of brackets': `PASSED ${fill('[')}`,
  'failed brackets': `${fill('FAILED [')}`,
  'colours that do not end': fill('[1'),
  digits: `  ${fill('1')}`,
  'numbered lines': fill('  1) a\n'),
  'dots of django': fill(' ... Testing against Django installed in '),
  'errors of django': fill(' ... Internal Server Error: /'),
  'checks of django': fill(' ... System check identified no issues (0 silenced)'),
  'titles of sympy': fill('__ a.py:b '),
  'parentheses of go': `--- PASS: ${fill(' (')}`,
  'times of jest': `✓ ${fill(' (1 m')}`,
  'brackets of googletest': fill('[ OK '),
  'endings of googletest': `${fill('[ OK ] ')}(1)`,
  'options of maven': fill('-Dtest= '),
  'colons of ruby': fill('a: '),
  'dots of cucumber': fill(' .'),
  'equals of minitest': fill('. ='),
  'browsers on a line': `${fill('Chrome 9 (L) ')}FAILED\n`,
  'headless browsers': `${fill('Chrome Headless 9 (Linux x86_64) ')}FAILED\n`,
  'phantoms on a line': fill('2KPhantomJS 1 (Linux 1) '),
  'files of react': `PASS ${fill(' (1')}`,
  'open elements': `<doctest>${fill('<TestCase>')}`,
  'attributes that do not close': `<doctest ${fill('a="b" ')}</doctest>`,
  'tags of p5': fill('<a>'),
  'blocks of p5': fill('<a>x</a>'),
  'runs of cypress': fill('Running: ('),
  'passing counts': fill('passing 1'),
  'assertions of next': ` xvfb-run ${fill('AssertionError: #')}`,
  'sections of ugrep': fill('*** a'),
  'sections of ugrep that do not close': `*** ${fill('***  ')}`,
  'times of surefire': `[INFO] ${fill('a  --  Time elapsed: 1')}`,
  'dashes of surefire': `[INFO]${fill(' --')}Time elapsed: 1 s`,
  'suites of gradle': fill('<?xml version <testsuite>'),
  'nested suites': `<?xml version="1.0"?>${fill('<testsuite>')}</testsuite>`,
  'tests of ctest': fill('1/1 Test #1: a .'),
  'fractions of ctest': fill('1/'),
  'failed tests of ctest': `The following tests FAILED:\n${fill('\t1 - a\n')}`,
  'headings of ctest': fill('The following tests FAILED:\n'),
  'cases of catch2': fill('<TestCase name="a"'),
  'cases of catch2 without an end': `${fill('<TestCase name="a">')}`,
  'dots of catch2': fill('a\n...'),
  'outcomes of catch2': fill('a...passed'),
  'ends of catch2': `${fill('All tests passed (')}1 test case)`,
  'ends of catch2 without a count': fill('All tests passed ('),
  'errors of boost': fill('error in '),
  'quotes of boost': fill('error "'),
  'numbers of lit': `FAIL: a :: ${fill('(1 of 1)')}`,
  'blanks of lit': `FAIL: a :: x${fill(' ')}(1 of`,
  'words of turbo': `${fill('a:test')}`,
  'colons of turbo': `${fill(':test:')} ERROR:`,
  'cmp of tippecanoe': `cmp ${fill('a/')}.check.out b`,
  'times of react-pdf': `✓ ${fill(' 1m')}`,
  'times of marked': `✔ ${fill(' (1.')}`,
  'brackets of bun': `(pass) ${fill('[a] ')}]`,
  'dots of slugify': fill(' ... '),
  'classes of phpunit': `${fill('(a')})`,
  'equals of ruby': `#test_${fill(' = ')}`,
  'examples of rspec': fill('{"version'),
  'counts of karma': fill('Executed 1 of 1 '),
  'specs of jasmine': fill('1 specs, 1 failures '),
  'a count beyond any log': `Executed 99999999999 of 99999999999 SUCCESS\nOK (99999999999)\n[==] 1 test from\n[ PASSED ] 99999999999 tests`,
  'times that do not end': `✓ ${fill('1.')}s`,
  'blanks before a time': `  - a${fill(' ')}12ms`,
  'open braces of TAP': fill('ok 1 - a {\n'),
  'a long path above many tests': `RUNNING...\n${'p'.repeat(SIZE / 2)}\n${' a\n'.repeat(SIZE / 6)}`,
  'a long path of TAP': `ok 1 - ${'p'.repeat(SIZE / 2)} {\n${fill('ok 1 - a\n')}`,
  'comments of TAP': `ok 1 - ${fill(' #')}`,
  'documents that do not close': fill('<?xml'),
  'cases that do not close': fill('<testcase name="a">'),
  'cases without a name': fill('<testcase '),
  'documents inside a document': `${fill('<?xml ')}</testsuites></testsuite>`,
  'modules of maven': `[INFO] ${fill(' ..')}`,
  'counts of maven': fill('Tests run: 1, Failures: 1, Errors: 1, Skipped: '),
  'classes of maven': `[ERROR] ${fill('a.')}`,
  'dots of ctest': `1/1 Test #1: a ${fill('. ')}`,
  'tests of botan': fill('a ran 1 tests in '),
  'titles of pytest': `= FAILURES =\n${fill('_ ')}`,
  'words of hspec': `RUNNING...\n${fill(' FAILED [1')}`,
  'deep lines of hspec': `RUNNING...\n${Array.from({ length: 600 }, (_, at) => `${' '.repeat(at)}a\n`).join('')}`,
  'columns of julia': `Test Summary: |\na |${fill(' 1')}`,
  'checks of R': fill('* checking a ...'),
  'namespaces of lein': `lein test ${fill(' a')}`,
  'events of dart': fill('['),
  'stars of scala': `[info] - ${fill(' *** FAILED')}`,
  'numbers of alcotest': `[OK] ${fill('a 1')}`,
  'words of alcotest': `[OK] ${fill(' a')}`,
  'brackets of dotnet': `  Passed ${fill(' [')}`,
  'letters of minitest': `A#b${fill(' = 1')}`,
  'capitals of minitest': `test ${fill(' P')}`,
  'ends of exunit': `* test ${fill(' [L#1')}`,
  'headers of pytest': fill('short test summary info'),
  'dashes of pytest': `PASSED ${fill(' -')}`,
  'workers of xdist': fill('[gw0] ['),
  'ends of xdist': `a ${fill(' PASSED [ in 1s')}`,
  'temporary files of quarto': `[unit] ${fill('/tmp/a')}`,
};

test.each(Object.entries(HOSTILE))(
  '%s: no parser stalls on it',
  (_name, log) => {
    const slow: string[] = [];
    // SWE-rebench V1 has the readers of other dialects.
    for (const dialect of DIALECTS.filter((one) => one !== 'swe-rebench')) {
      for (const parser of parserNames(dialect)) {
        // The CPU time of this thread, so that other processes do not fail the test.
        const start = process.threadCpuUsage();
        try {
          readLog(parser, dialect, log, instance(parser));
        } catch (error) {
          // A reader may throw where the harness raises.
          if (!(error instanceof RangeError) && !(error instanceof SyntaxError)) throw error;
        }
        const { user, system } = process.threadCpuUsage(start);
        const milliseconds = (user + system) / 1000;
        if (milliseconds > 1500) slow.push(`${parser} ${dialect}: ${Math.round(milliseconds)} ms`);
      }
    }
    expect(slow).toEqual([]);
  },
  60_000,
);
