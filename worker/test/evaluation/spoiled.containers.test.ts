/**
 * Changed gold patches on our own examples, one with an uncommitted edit and one with a builder's commit on HEAD: verdict and statuses
 * equal those of the harness's steps in plain bash. `differential/run.ts` compares with the real harness.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { Instance } from '@swefarm/shared';
import { buildExamples } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Evaluator, openEvaluator } from './evaluator.ts';

const DIRTY = 'r1chardj0n3s__parse-1.20.2';
const BUILDERS_COMMIT = 'sdispater__tomlkit-0.11.5';
const HEAD = 'source /opt/miniconda3/bin/activate; conda activate testbed; cd /testbed\n';

let folder: string;
let evaluator: Evaluator;
let rows: Map<string, Instance>;

beforeAll(async () => {
  folder = temporaryFolder('spoiled');
  const built = await buildExamples({ ids: [DIRTY, BUILDERS_COMMIT], for: 'docker', out: folder });
  const lines = (await readFile(built.files.docker ?? '', 'utf8')).split('\n').filter(Boolean);
  rows = new Map(
    lines
      .map((line) => Instance.parse({ ...JSON.parse(line), family: 'custom' }))
      .map((row) => [row.instance_id, row]),
  );
  evaluator = await openEvaluator();
});
afterAll(() => evaluator[Symbol.asyncDispose]());

const fileOf = (diff: string): string => /^diff --git a\/(\S+)/m.exec(diff)?.[1] ?? '';
const big = `diff --git a/big.txt b/big.txt\nnew file mode 100644\n--- /dev/null\n+++ b/big.txt\n@@ -0,0 +1,52000 @@\n${`+${'x'.repeat(99)}\n`.repeat(52_000)}`;

/** Gold and changed forms of it. */
const SPOILED: Record<string, (row: Instance) => string> = {
  gold: ({ patch }) => patch,
  noop: () => '',
  'wrong fix': ({ patch }) => patch.replace(/^\+(\s+)\S.*$/m, '+$1pass'),
  'a broken neighbour': (row) => row.patch + added('conftest.py', 'raise RuntimeError(1)'),
  'deleted tests': (row) => row.patch + deleted(row),
  'no final newline': ({ patch }) => patch.replace(/\n$/, ''),
  'only fuzz': ({ patch }) => patch.replace(/(^@@ .*\n) .*\n/gm, '$1 # some other line\n'),
  'corrupt hunk': ({ patch }) => patch.replace(/^(@@ -\d+,)(\d+)/m, '$199'),
  binary: ({ patch }) =>
    `${patch}diff --git a/b.bin b/b.bin\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..ea7d4ff0dca1e0a6e5b3ec1f8e1c1f4a3e3a2b1c\nGIT binary patch\nliteral 3\nKcmZQzVqgFO0096200\n`,
  '5 MB': ({ patch }) => patch + big,
};

const added = (path: string, line: string): string =>
  `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+${line}\n`;

/** A diff that removes the first test file, made by git in the image. */
function deleted(row: Instance): string {
  const script = `cd /testbed && git diff --no-index --src-prefix=a/ --dst-prefix=b/ ${fileOf(row.test_patch)} /dev/null`;
  return spawnSync('docker', ['run', '--rm', '--network', 'none', row.image, 'bash', '-c', script], {
    encoding: 'utf8',
  }).stdout;
}

/** Runs the harness's steps (three ways to apply, reset, test patch, tests). `statuses`: test → status, from the printed lines. */
function plainly(row: Instance, patch: string): { applied: boolean; statuses: Record<string, string> } {
  const id = execFileSync(
    'docker',
    ['run', '-d', '--rm', '--network', 'none', '--label', 'swefarm.test=spoiled', row.image, 'sleep', '600'],
    { encoding: 'utf8' },
  ).trim();
  const bash = (input: string) =>
    spawnSync('docker', ['exec', '-i', id, 'bash'], { input, encoding: 'utf8', maxBuffer: 1e9 });
  try {
    if (patch !== '') {
      spawnSync('docker', ['exec', '-i', id, 'bash', '-c', 'cat >/tmp/p'], { input: patch });
      const tries = [
        'git apply --verbose /tmp/p',
        'git apply --verbose --reject /tmp/p',
        'patch --batch --fuzz=5 -p1 -i /tmp/p',
      ];
      if (bash(`cd /testbed; ${tries.join(' || ')}`).status !== 0) return { applied: false, statuses: {} };
    }
    const files = [...row.test_patch.matchAll(/^diff --git a\/.* b\/(.*)$/gm)]
      .map((found) => found[1])
      .join(' ');
    const steps = [
      row.install ?? ':',
      `git checkout ${row.base_commit} ${files}`,
      `git apply -v - <<'EOF_1'\n${row.test_patch}\nEOF_1`,
      `${row.test_cmd} ${files} 2>&1`,
    ];
    const { stdout } = bash(HEAD + steps.join('\n'));
    const found = [...stdout.matchAll(/^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) (\S+)/gm)];
    return { applied: true, statuses: Object.fromEntries(found.map(([, status, name]) => [name, status])) };
  } finally {
    execFileSync('docker', ['rm', '-f', id], { stdio: 'ignore' });
  }
}

describe.each([DIRTY, BUILDERS_COMMIT])('%s', (id) => {
  test.each(Object.keys(SPOILED))('%s', async (name) => {
    const row = rows.get(id);
    if (!row) throw new Error(`${id} was not built`);
    const patch = SPOILED[name]?.(row) ?? '';
    const plain = plainly(row, patch);
    const { report } = await evaluator.run(row, patch);
    expect(report.patch_state).toBe(patch === '' ? 'empty' : plain.applied ? 'applied' : 'not_applied');
    expect(report.status_map ?? {}).toEqual(plain.statuses);
    const named = [...row.FAIL_TO_PASS, ...row.PASS_TO_PASS];
    expect(report.resolved).toBe(plain.applied && named.every((one) => plain.statuses[one] === 'PASSED'));
    if (name === 'gold' || name === 'only fuzz') expect(report.resolved).toBe(true);
    if (name === 'noop' || name === 'corrupt hunk') expect(report.resolved).toBe(false);
  });
});
