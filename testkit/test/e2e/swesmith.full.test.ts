/** SWE-smith in all states of an instance's branch, on Docker and rootfs, with patches good and bad, and in other languages. */
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runCommand, type SmithRow, smithOwn, smithParse } from '@swefarm/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answersIn, looksFor, markOf, openSmithFarm, type SmithFarm } from './smithfarm.ts';

let farm: SmithFarm;
beforeAll(async () => {
  farm = await openSmithFarm();
});
afterAll(() => farm[Symbol.asyncDispose]());

const NEW_FILE =
  'diff --git a/other.py b/other.py\nnew file mode 100644\n--- /dev/null\n+++ b/other.py\n@@ -0,0 +1 @@\n+x = 1\n';
const BROKEN =
  'diff --git a/parse.py b/parse.py\n--- a/parse.py\n+++ b/parse.py\n@@ -1,1 +1,1 @@\n-nothing like it\n+x\n';

/** Options of a run that hands in the same patch for each row. */
async function handingIn(dataset: string, rows: readonly SmithRow[], patch: string): Promise<string[]> {
  const path = `${dataset}.predictions`;
  const lines = rows.map(({ instance_id }) =>
    JSON.stringify({ instance_id, model_name_or_path: 'm', model_patch: patch }),
  );
  await writeFile(path, lines.map((line) => `${line}\n`).join(''));
  return ['--agent', 'patch', '--patches', path];
}

describe.each(['docker', 'rootfs'] as const)("the example parse in SWE-smith's form, on %s", (runtime) => {
  let rows: SmithRow[];
  let dataset: string;
  beforeAll(async () => {
    rows = await smithParse(join(farm.folder, runtime), runtime);
    dataset = await farm.write(`${runtime}.jsonl`, rows);
  });
  afterAll(() => {
    if (runtime === 'docker')
      execFileSync('docker', ['rmi', '-f', ...rows.map(({ image_name }) => image_name)]);
  });
  const each = (line: object) => rows.map(() => line);
  const run = (name: string, options: string[], code = 0) =>
    farm.rollouts(dataset, runtime, name, options, code);

  test('gold resolves each, nothing none', async () => {
    expect(await run('golden', ['--agent', 'golden'])).toMatchObject(
      each({ resolved: true, reward: 1, report: { trust: { level: 'clean', reasons: [] } } }),
    );
    expect(await run('noop', ['--agent', 'noop'])).toMatchObject(each({ resolved: false, reward: 0 }));
  });

  test('a patch of something else resolves none, a broken one does not apply', async () => {
    const other = await run('other', await handingIn(dataset, rows, NEW_FILE));
    expect(other).toMatchObject(each({ outcome: 'judged', resolved: false, reward: 0 }));
    const broken = await run('broken', await handingIn(dataset, rows, BROKEN));
    expect(broken).toMatchObject(each({ resolved: false, report: { patch_state: 'not_applied' } }));
  });

  test('an agent finds neither the tests nor the code without the bug', async () => {
    const seen = await farm.observed(dataset, runtime, looksFor(markOf(rows[0])));
    for (const row of rows) expect(answersIn(seen.get(row.instance_id) ?? '', row)).toEqual([]);
  });

  test('health finds them sound', async () => {
    const health = await runCommand(
      'swefarm',
      ['health', '--dataset', dataset, '--runtime', runtime],
      farm.env,
    );
    expect(health.code, health.stderr).toBe(0);
    expect(health.stderr).toContain('4 of 4 instances are healthy');
  });
});

test('a bug that cannot be made is the fault of the instance, and no verdict', async () => {
  const [row] = await smithParse(join(farm.folder, 'unmade'), 'rootfs', ['absent']);
  const dataset = await farm.write('unmade.jsonl', [{ ...row, patch: BROKEN }]);
  for (const agent of ['golden', 'noop']) {
    expect(await farm.rollouts(dataset, 'rootfs', agent, ['--agent', agent], 10)).toMatchObject([
      { outcome: 'failed', resolved: null, reward: null, failure: { class: 'setup_failed' } },
    ]);
  }
});

function onPath(program: string): string | null {
  try {
    return execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
}

const GO = onPath('go');
const LANGUAGES = [
  {
    name: 'Go',
    tool: GO,
    own: {
      project: 'go-chi__chi.23c395f8',
      id: 'func_basic__go000001',
      path: [dirname(GO ?? '')],
      files: {
        'go.mod': 'module example.org/count\n\ngo 1.18\n',
        'count.go':
          'package count\n\nfunc Up(to int) int {\n\tn := 0\n\tfor i := 0; i < to; i++ {\n\t\tn++\n\t}\n\treturn n\n}\n\nfunc Same(n int) int { return n }\n',
        'count_test.go':
          'package count\n\nimport "testing"\n\nfunc TestUp(t *testing.T) {\n\tif Up(3) != 3 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
        'same_test.go':
          'package count\n\nimport "testing"\n\nfunc TestSame(t *testing.T) {\n\tif Same(3) != 3 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
      },
      bug: { file: 'count.go', good: 'i := 0', bad: 'i := 1' },
      failing: ['count_test.go'],
      FAIL_TO_PASS: ['TestUp'],
      PASS_TO_PASS: ['TestSame'],
    },
  },
  {
    name: 'JavaScript',
    tool: process.execPath,
    own: {
      project: 'markedjs__marked.dbf29d91',
      id: 'func_basic__js000001',
      path: ['/opt/node'],
      files: {
        'package.json': '{"name": "count", "type": "module"}\n',
        'count.js':
          'export const up = (to) => {\n  let n = 0;\n  for (let i = 0; i < to; i++) n++;\n  return n;\n};\nexport const same = (n) => n;\n',
        'test/up.test.js':
          "import assert from 'node:assert';\nimport { test } from 'node:test';\nimport { up } from '../count.js';\ntest('counts up', () => assert.equal(up(3), 3));\n",
        'test/same.test.js':
          "import assert from 'node:assert';\nimport { test } from 'node:test';\nimport { same } from '../count.js';\ntest('stays the same', () => assert.equal(same(3), 3));\n",
      },
      bug: { file: 'count.js', good: 'i = 0', bad: 'i = 1' },
      failing: ['test/up.test.js'],
      FAIL_TO_PASS: ['counts up'],
      PASS_TO_PASS: ['stays the same'],
    },
  },
];

test.each(LANGUAGES)(
  '$name: gold resolves, nothing does not, and the failing test is not there',
  async ({ name, tool, own }) => {
    if (tool === null) throw new Error(`${name} cannot be tested: there is no go on this machine`);
    const row = await smithOwn(farm.folder, own);
    if (name === 'JavaScript') {
      const image = row.image_name.slice('host+dir:'.length);
      await mkdir(join(image, 'opt/node'), { recursive: true });
      await copyFile(tool, join(image, 'opt/node/node'));
    }
    const dataset = await farm.write(`${own.id}.jsonl`, [row]);
    const of = (agent: string) => farm.rollouts(dataset, 'rootfs', agent, ['--agent', agent]);
    expect(await of('golden')).toMatchObject([{ resolved: true, reward: 1 }]);
    expect(await of('noop')).toMatchObject([{ resolved: false, reward: 0 }]);
    const seen = await farm.observed(dataset, 'rootfs', 'git ls-files; ls test 2>&1');
    const listed = (seen.get(row.instance_id) ?? '').split('\n');
    expect(listed).toContain(own.bug.file);
    for (const file of own.failing) expect(listed).not.toContain(file);
  },
);
