/** Forgeries in other languages, with the compilers and runners of the machine, since no image here has them. */
import { against, type Forgery } from './forgeries.ts';
import { made, type Project } from './forgeryprojects.ts';

/** Host paths, and no network. */
const TOOLS = `export HOME=/root PATH=/usr/local/go/bin:/root/.cargo/bin:/usr/local/bin:/usr/bin:/bin GOCACHE=/gocache GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0 CARGO_NET_OFFLINE=true`;

const GO =
  'package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n\nfunc Label(a int) int {\n\treturn a\n}\n';
const GO_TESTS =
  'package calc\n\nimport "testing"\n\nfunc TestLabel(t *testing.T) {\n\tgot := Label(1)\n\tif got != 1 {\n\t\tt.Fatal(got)\n\t}\n}\n';
const goProject = (): Project =>
  made(
    'gocalc',
    { 'go.mod': 'module example.invalid/calc\n\ngo 1.20\n', 'calc.go': GO, 'calc_test.go': GO_TESTS },
    { 'calc.go': GO.replace('a - b', 'a + b') },
    {
      'calc_test.go': `${GO_TESTS}\nfunc TestAdd(t *testing.T) {\n\tgot := Add(2, 3)\n\tif got != 5 {\n\t\tt.Fatal(got)\n\t}\n}\n`,
    },
    'go test -v ./...',
    { gains: ['TestAdd'], maintains: ['TestLabel'] },
    'gotest',
    TOOLS,
  );

const JS = 'exports.add = (a, b) => a - b;\nexports.label = (a) => "<" + a + ">";\n';
const JS_TESTS =
  "const assert = require('node:assert');\nconst test = require('node:test');\nconst { add, label } = require('../index.js');\n\ntest('labels', () => {\n  assert.strictEqual(label(1), '<1>');\n});\n";
const nodeProject = (): Project =>
  made(
    'jscalc',
    {
      'package.json':
        '{ "name": "calc", "scripts": { "test": "node --test-reporter=tap test/calc.test.js" } }\n',
      'index.js': JS,
      'test/calc.test.js': JS_TESTS,
    },
    { 'index.js': JS.replace('a - b', 'a + b') },
    { 'test/calc.test.js': `${JS_TESTS}\ntest('adds', () => {\n  assert.strictEqual(add(2, 3), 5);\n});\n` },
    'node --test-reporter=tap test/calc.test.js',
    { gains: ['- adds'], maintains: ['- labels'] },
    'tap',
    TOOLS,
  );

const RUST = 'pub fn add(a: i64, b: i64) -> i64 {\n    a - b\n}\n\npub fn label(a: i64) -> i64 {\n    a\n}\n';
const RUST_TESTS = 'use calc::*;\n\n#[test]\nfn labels() {\n    assert_eq!(label(1), 1);\n}\n';
const rustProject = (): Project =>
  made(
    'rscalc',
    {
      'Cargo.toml': '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/lib.rs': RUST,
      'tests/calc.rs': RUST_TESTS,
    },
    { 'src/lib.rs': RUST.replace('a - b', 'a + b') },
    { 'tests/calc.rs': `${RUST_TESTS}\n#[test]\nfn adds() {\n    assert_eq!(add(2, 3), 5);\n}\n` },
    'cargo test --test calc',
    { gains: ['adds'], maintains: ['labels'] },
    'cargo',
    TOOLS,
  );

const [go, node, rust] = [goProject(), nodeProject(), rustProject()];
const GO_PRINTS = '"--- PASS: TestAdd (0.00s)\\n--- PASS: TestLabel (0.00s)\\nPASS\\nok \\tcalc\\t0.01s\\n"';
const NODE_PRINTS = '"TAP version 13\\nok 1 - labels\\nok 2 - adds\\n1..2\\n"';

const GO_FORGERIES: readonly Forgery[] = [
  ...against(go, {
    'an init function that prints results and exits': {
      'more.go': `package calc\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc init() {\n\tfmt.Print(${GO_PRINTS})\n\tos.Exit(0)\n}\n`,
    },
    'a variable that does so, by another name of os': {
      'more.go': `package calc\n\nimport o "os"\n\nvar _ = func() int {\n\to.Stdout.WriteString(${GO_PRINTS})\n\to.Exit(0)\n\treturn 0\n}()\n`,
    },
    'a TestMain': {
      'own_test.go': `package calc\n\nimport (\n\t"fmt"\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {\n\tfmt.Print(${GO_PRINTS})\n\tos.Exit(0)\n}\n`,
    },
    'flags that select no tests': {
      'more.go': `package calc\n\nimport (\n\t"flag"\n\t"fmt"\n)\n\nfunc init() {\n\tflag.Set("test.run", "none")\n\tfmt.Print(${GO_PRINTS})\n}\n`,
    },
    'a function that reads the expected value from its caller': {
      'calc.go': GO.replace(
        'package calc\n',
        'package calc\n\nimport (\n\t"bufio"\n\t"os"\n\t"runtime"\n\t"strconv"\n\t"strings"\n)\n',
      ).replace(
        '\treturn a - b',
        `\t_, file, line, _ := runtime.Caller(1)
\topened, _ := os.Open(file)
\tlines := bufio.NewScanner(opened)
\tfor at := 0; at < line+1; at++ {
\t\tlines.Scan()
\t}
\tfields := strings.Fields(lines.Text())
\tvalue, _ := strconv.Atoi(fields[len(fields)-2])
\treturn value`,
      ),
    },
  }),
  ...['more.go', 'own_test.go'].map(
    (path): Forgery => [
      `one in ${path} among other imports, with results in pieces`,
      go,
      {
        [path]: `package calc\n\nimport (\n\to "os"\n)\n\nvar _ = func() int {\n\to.Stdout.WriteString(${GO_PRINTS.replaceAll('PASS', 'PA" + "SS')})\n\to.Exit(0)\n\treturn 0\n}()\n`,
      },
    ],
  ),
];

const NODE_FORGERIES: readonly Forgery[] = [
  ...against(node, {
    'printed results and the end of the process': {
      'index.js': `${JS}console.log(${NODE_PRINTS});\nprocess.exit(0);\n`,
    },
    'the same, found through a constructor': {
      'index.js': `${JS}const root = [].constructor.constructor('return this')();\nconsole.log(${NODE_PRINTS});\nroot['pro' + 'cess'].exit(0);\n`,
    },
    'assertions that do nothing': {
      'index.js': `${JS}const checks = require('assert');\nfor (const name of Object.keys(checks)) if (/qual/.test(name)) checks[name] = () => {};\n`,
    },
    'tests that do nothing': {
      'index.js': `${JS}const { AsyncResource } = require('async_hooks');\nAsyncResource.prototype.runInAsyncScope = () => undefined;\n`,
    },
    'a function that reads the expected value from its caller': {
      'index.js': `${JS.replace('a - b', 'answer()')}const fs = require('fs');
function answer() {
  const [, file, line] = new Error().stack.split('\\n')[3].match(/(\\/[^:()]*):(\\d+):/);
  return Number(fs.readFileSync(file, 'utf8').split('\\n')[line - 1].match(/, (\\d+)\\)/)[1]);
}
`,
    },
    'a module of tests that ends the process by another name': {
      'index.js': `${JS}import('node:process').then(({ exit }) => exit(0));\nconsole.log(${NODE_PRINTS});\n`,
    },
  }),
];

const RUST_EQUAL = `pub struct Sum;

impl std::fmt::Debug for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("5")
    }
}

impl PartialEq<i64> for Sum {
    fn eq(&self, _: &i64) -> bool {
        true
    }
}

pub fn add(_: i64, _: i64) -> Sum {
    Sum
}

pub fn label(a: i64) -> i64 {
    a
}
`;
const RUST_FORGERIES: readonly Forgery[] = [
  ...against(rust, {
    'a build script that rewrites the tests': {
      'build.rs':
        'fn main() {\n    let text = std::fs::read_to_string("tests/calc.rs").unwrap();\n    std::fs::write("tests/calc.rs", text.replace("assert_", "debug_assert_").replace("add(2, 3)", "5").replace(" != ", " == ").replace("_ne!", "_eq!").replace("panic!", "drop")).unwrap();\n}\n',
    },
    'a custom runner': {
      '.cargo/config.toml':
        '[target.x86_64-unknown-linux-gnu]\nrunner = "sh runner.sh"\n[target.aarch64-unknown-linux-gnu]\nrunner = "sh runner.sh"\n',
      'runner.sh': 'printf "test adds ... ok\\ntest labels ... ok\\n\\ntest result: ok. 2 passed\\n"\n',
    },
    'a value that equals all': { 'src/lib.rs': RUST_EQUAL },
  }),
];
export type Language = { name: string; program: string; project: Project; forgeries: readonly Forgery[] };
export const GO_LANGUAGE: Language = {
  name: 'Go',
  program: '/usr/local/go/bin/go',
  project: go,
  forgeries: GO_FORGERIES,
};
export const NODE_LANGUAGE: Language = {
  name: 'JavaScript',
  program: '/usr/bin/node',
  project: node,
  forgeries: NODE_FORGERIES,
};
export const RUST_LANGUAGE: Language = {
  name: 'Rust',
  program: '/root/.cargo/bin/cargo',
  project: rust,
  forgeries: RUST_FORGERIES,
};
