/** Parsers that SWE-rebench V2 (commit c71902a) has and swebench lacks, by name, without the prefix `parse_log_`. */
import { withoutEscapes } from '../text/escapes.ts';
import { py } from '../text/pattern.ts';
import { before, fields, shortLines, strip } from '../text/pythontext.ts';
import { botan, cppPytest } from './cpp.ts';
import { dartExpanded, dartJson, dartMelos } from './dart.ts';
import { dropTime } from './endings.ts';
import { haskell, hspec } from './haskell.ts';
import { julia } from './julia.ts';
import { anyMarks, nestedTap } from './nodelogs.ts';
import { alcotest, dune } from './ocaml.ts';
import { withoutControls } from './pytest.ts';
import { rCheck, testthat } from './r.ts';
import {
  forms,
  type Readers,
  reading,
  STATUS,
  setUnlessFailed,
  setWorst,
  statusOf,
  wholeLineForms,
} from './reader.ts';
import { scalatest, scalatestSuites } from './scala.ts';
import { javaMaven, javaReactor, kotlin } from './surefire.ts';
import { combinedReports, firstReport, gradlew, junitText, wholeReport } from './xmllogs.ts';

/** Reads plenary, the test runner of Neovim plugins: `Success || name`. */
const plenary = forms([py`^(?<word>Success|Fail(?:ed)?|Skip(?:ped)?)\s*\|\|\s*(?<name>.+)`], {
  store: setUnlessFailed,
  clean: withoutEscapes,
});

const WORD = '(?<word>PASSED|FAILED|SKIPPED|ERROR)';
/** Reads pytest under xdist and with durations: `[gw0] [ 50%] PASSED name`, `name PASSED [ 50%] in 1.20s` and `PASSED name`. */
const pytestNebo = forms(
  [
    py`^\[gw\d+\]\s+\[[^\]]*\]\s+${WORD}\s+(?<name>.*)`,
    py`^(?<name>.*\S)\s+${WORD}\s+\[[^\[\]]*\]\s+in\s+\d+(?:\.\d+)?s$`,
    py`^${WORD}\s+(?<name>.*)`,
  ],
  { clean: withoutControls, rename: (name) => strip(before(name, ' in ')) },
);

/** Reads `PASSED name  anything`. Two blanks end the name. */
const statusFirst = forms([py`^${WORD}\s+(?<name>\S.*?)(?:\s\s|$)`], {
  store: setWorst,
  clean: (line) => withoutEscapes(line, ' '),
});

/** Reads `[OK] name`. Each run of blanks in a name becomes one blank. */
const brackets = forms(
  [
    [new RegExp(py`^\[(?:OK|PASS|PASSED|SUCCESS)\]\s+(?<name>.+)`, 'iu'), 'PASSED'],
    [new RegExp(py`^\[(?:SKIP[A-Z0-9_]*|TODO|PENDING|DISABLED)\]\s+(?<name>.+)`, 'iu'), 'SKIPPED'],
    [
      new RegExp(py`^\[(?:FAIL[A-Z0-9_]*|ERROR|EXCEPTION|CRASH|FATAL|KO|PANIC)\]\s+(?<name>.+)`, 'iu'),
      'FAILED',
    ],
  ],
  { store: setWorst, rename: (name) => fields(name).join(' ') },
);

const MOCHA = { store: setUnlessFailed, rename: (name: string): string => strip(dropTime(name)) };
const MOCHA_MARKS = py`^(?<word>[✔-])\s(?<name>.+)`;

/** Reads Pest: a mark, a name, and optional seconds. The name of a failed suite counts as a test. */
const pest = forms(
  [
    py`^(?<word>[✓✔⨯x-])\s+(?<name>.*?\S)(?:\s+\d+(?:\.\d+)?s)?$`,
    [py`^FAIL\s+(?<name>.+)`, 'FAILED'],
    [py`^(?=.*skipped)(?<name>.*?\S)(?:\s+\d+(?:\.\d+)?s)?$`, 'SKIPPED'],
  ],
  { store: setUnlessFailed },
);

/** Reads `lein test`: a namespace passes unless a failure follows the name of the namespace. */
const lein = reading((log, found) => {
  let current: string | null = null;
  for (const line of shortLines(log)) {
    const [first, second, ...names] = line.startsWith('lein test') ? fields(line) : [];
    if (first === 'lein' && second === 'test' && names[0] !== ':only') {
      for (const name of names) {
        if (!found.has(name)) found.set(name, 'PASSED');
        current = name;
      }
    } else if (current !== null && line.startsWith('FAIL in')) found.set(current, 'FAILED');
    else if (current !== null && line.startsWith('ERROR in')) found.set(current, 'ERROR');
  }
});

const CTEST = statusOf({ passed: 'PASSED', skipped: 'SKIPPED' });

const SUITE = py`^([A-Z][A-Za-z0-9_:]*)\s*$`;
const RUBY_TEST = py`^\s*(test[^A-Z]*[^A-Z\s])\s+(PASS|PASSED|FAIL|FAILURE|ERROR|SKIP|SKIPPED)(?![A-Za-z0-9_])`;

/** Reads minitest-reporters: a class, then lines `test_name  PASS (0.01s)`. Stores `Class::test_name` with the worst status. */
const minitestClasses = reading((log, found) => {
  let suite = '';
  for (const line of shortLines(log)) {
    suite = SUITE.exec(line)?.[1] ?? suite;
    const [, name, word] = RUBY_TEST.exec(line) ?? [];
    if (word !== undefined) setWorst(found, `${suite}::${name}`, STATUS[word] ?? '');
  }
});

/** Readers by name. SWE-rebench misspells some names. */
export const REBENCH: Readers = {
  cpp: cppPytest,
  cpp_v2: forms([py`^Test\s+(?<name>.*\S)\s+(?<word>passed|failed|skipped)$`], { store: setUnlessFailed }),
  cpp_v3: botan,
  // The lines of ctest that have blanks around the dots: `1/6 Test #1: name ....   Passed`.
  cpp_v4: forms(
    [
      new RegExp(
        py`^\d+/\d+\s+Test\s+#\d+:\s+(?<name>.*?\S)\s+\.+\s+(?<word>passed|failed|skipped|timeout)\b`,
        'iu',
      ),
    ],
    { store: (found, name, word) => found.set(name, CTEST[word.toLowerCase()] ?? 'FAILED') },
  ),
  // `  Passed name [12 ms]` and `[xUnit.net 00:00:00.52]     name [FAIL]`
  csharp: wholeLineForms(
    [
      [py`^\s*\[xUnit\.net [^\]]*\]\s*(?<name>\S.*) \[FAIL\]\s*$`, 'FAILED'],
      py`^\s+(?<word>Passed|Failed|Skipped)\s+(?<name>\S.*?) \[`,
      py`^\s+(?<word>Skipped)\s+(?<name>\S.*)`,
    ],
    { store: setUnlessFailed, rename: strip },
  ),
  dart: dartJson,
  dart_v2: dartMelos,
  dart_v3: dartExpanded,
  // `* test name (1.2ms) [L#5]` and, for a failed test, `1) test name (Module)`
  elixir: forms(
    [
      [py`^\d+\)\s+test\s+(?<name>.*\S)\s*\([^(]*\)$`, 'FAILED'],
      py`^\* test \s*(?<name>.*\S)\s*\((?<word>skipped)\)\s*\[L#\d+\]$`,
      [py`^\* test \s*(?<name>.*?\S)\s*(?:\([\d.]+ms\)\s*)?\[L#\d+\]$`, 'PASSED'],
    ],
    { store: setUnlessFailed },
  ),
  gradlew_v1: gradlew,
  haskell,
  haskell_v2: hspec,
  java_mvn: javaMaven,
  java_mvn_v2: javaReactor,
  // A numbered failure must end in a colon or begin with `[W]`.
  js: forms(
    [MOCHA_MARKS, [py`^\[W\]\s*\d+\)\s+(?<name>.*?):?$`, 'FAILED'], [py`^\d+\)\s+(?<name>.*):$`, 'FAILED']],
    MOCHA,
  ),
  js_2: forms([MOCHA_MARKS, [py`^(?:\[W\]\s*)?\d+\)\s+(?<name>.*?):?$`, 'FAILED']], MOCHA),
  js_3: nestedTap,
  js_4: anyMarks,
  julia,
  junit: junitText,
  kotlin_junit: kotlin,
  lein,
  lua_nvim: plenary,
  npx: forms([
    py`^(?<word>✔)\s+(?<name>.*?\S)(?:\s+\(\d+(?:ms)?\))?$`,
    [py`^\d+\)\s+(?<name>.*?\S)(?:\s+\([^()]*\))?$`, 'FAILED'],
  ]),
  ocaml: alcotest,
  ocaml_v2: dune,
  ocaml_v3: brackets,
  ocaml_v4: statusFirst,
  ocaml_v5: statusFirst,
  parse_combined_test_reports: combinedReports,
  parse_java_mvn: javaMaven,
  parse_java_mvn_v2: javaReactor,
  parse_logs_kotlin_junit: kotlin,
  parse_logs_r_junit: firstReport,
  parse_lua_nvim: plenary,
  parse_lue_nvim: plenary,
  parse_test_report: wholeReport,
  php_v1: pest,
  pytest_nebo: pytestNebo,
  r: testthat,
  r_junit: firstReport,
  r_v2: rCheck,
  ruby_v1: minitestClasses,
  // `Class#test = 0.01 s = .`
  ruby_v2: forms([py`^(?<name>.[^#]*#.*\S)\s+=\s+[\d.]+\s+s\s+=\s+(?<word>[.FES])$`]),
  sbt: junitText,
  scala: scalatest,
  // munit: `+ name 0.1s` and `x name 0.1s`. Colour codes may lack the escape character.
  scala_v2: forms([py`^(?<word>[+x])\s+(?<name>\S.*)\s\d+(?:\.\d+)?(?:s|ms|μs|ns)$`], {
    rename: strip,
    clean: (line) => withoutEscapes(line).replace(/\[\d{1,3}m/g, ''),
  }),
  scala_v3: scalatestSuites,
  swift: forms([py`^Test Case '(?<name>[^']+)'\s+(?<word>passed|failed)\s+\([0-9.]+\s+seconds\)$`]),
};
