/** An artificial instance; `changes` replace fields. */
import { Instance, InstancePlan } from '@swefarm/shared';
import type { EvaluationFacts } from './report/grade.ts';

export const TEST_PATCH = `diff --git a/tests/test_crate.py b/tests/test_crate.py
--- a/tests/test_crate.py
+++ b/tests/test_crate.py
@@ -1,2 +1,3 @@
 import crate
+import lid
 
diff --git a/tests/data/crates.json b/tests/data/crates.json
new file mode 100644
--- /dev/null
+++ b/tests/data/crates.json
@@ -0,0 +1 @@
+{}
diff --git a/tests/test_lid.py b/tests/test_lid.py
new file mode 100644
--- /dev/null
+++ b/tests/test_lid.py
@@ -0,0 +1 @@
+import lid
`;

export const GOLD = `diff --git a/src/crate.py b/src/crate.py
--- a/src/crate.py
+++ b/src/crate.py
@@ -1 +1 @@
-LIMIT = 9
+LIMIT = 10
`;

export const adds = (path: string, ...lines: string[]): string =>
  `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}\n`).join('')}`;

/** A patch that changes the only line of a file. */
export const replaces = (path: string, from: string, to: string): string =>
  `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-${from}\n+${to}\n`;

export const instance = (changes: Partial<Instance> = {}): Instance => ({
  ...Instance.parse({
    instance_id: 'depot__crate-7',
    repo: 'depot/crate',
    base_commit: 'c0ffee',
    problem_statement: 'It bursts.',
    version: '1.0',
    patch: GOLD,
    test_patch: TEST_PATCH,
    FAIL_TO_PASS: ['tests/test_crate.py::test_holds'],
    PASS_TO_PASS: ['tests/test_crate.py::test_opens'],
    family: 'custom',
    image: 'depot/crate:1',
    test_cmd: 'pytest -rA',
    log_parser: 'pytest',
  }),
  ...changes,
});

/** Returns an {@link instance} without test command and log parser. */
export function fromTable(changes: Partial<Instance>): Instance {
  const { test_cmd: _command, log_parser: _parser, ...rest } = instance(changes);
  return rest;
}

/** The plan of a row. */
export const ownPlan = (changes: Partial<InstancePlan> = {}): InstancePlan => ({
  ...InstancePlan.parse({
    grader: 'quay-1.0',
    apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }],
    script: ": '>>>>> Start Test Output'\npytest -rA\n: '>>>>> End Test Output'\n",
    outcomes: { from: 'log', dialect: '4.1.0', parser: 'parse_log_pytest_v2' },
    verdict: { rule: 'swebench' },
  }),
  ...changes,
});

/** The facts of a completed evaluation; `changes` replace facts. */
export const ran = (log: string | null, changes: Partial<EvaluationFacts> = {}): EvaluationFacts => ({
  patch_state: 'applied',
  applied_with: 'git apply --verbose',
  log,
  timed_out: false,
  timeout_seconds: 1800,
  exit_code: 0,
  sandbox_killed: false,
  image_digest: null,
  ...changes,
});

/** A Harbor task. */
export const HARBOR = instance({
  harbor: {
    ...{ name: 'own/task', digest: `sha256:${'0'.repeat(64)}`, network: 'no-network', limits: {} },
    ...{
      files: {},
      agent: {},
      solution_env: {},
      verifier: { timeout: 9, env: {} },
      collect: [],
      artifacts: [],
    },
  },
});
