/** Tests the files of `swefarm dataset to-harbor`, and its refusals. testkit/clients/harbor/ runs such tasks with Harbor. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { writeLines } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { run } from './cli.ts';

const ROW = {
  ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'f00dfeed', version: '1', family: 'custom' },
  ...{ problem_statement: 'add() subtracts: "1" \\ $x', image: 'example.org/a/b:1', hints_text: '' },
  ...{ patch: 'diff --git a/c.py b/c.py\n', test_patch: '', test_cmd: 'pytest -rA', log_parser: 'pytest' },
  ...{ FAIL_TO_PASS: ['t.py::test_add'], PASS_TO_PASS: ['t.py::test_zero'] },
};

async function converted(rows: readonly object[], ...options: string[]) {
  const folder = await testFolder();
  const dataset = await writeLines(join(folder, 'rows.jsonl'), rows);
  const out = join(folder, 'tasks');
  const ran = await run(['dataset', 'to-harbor', '--dataset', dataset, '--output-dir', out, ...options]);
  return { ...ran, out, file: (name: string) => readFile(join(out, name), 'utf8') };
}

test('a task shows the agent neither the tests nor the fix of the instance', async () => {
  const { code, stdout, stderr, out, file } = await converted([ROW]);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ path: out, tasks: 1, without_solution: 0, left_out: {} });
  expect(await readdir(out)).toEqual(['a__b-1']);
  const toml = await file('a__b-1/task.toml');
  for (const line of [
    'schema_version = "1.4"',
    'instance_id = "a__b-1"',
    'environment_mode = "separate"',
    'memory_mb = 4096',
  ])
    expect(toml).toContain(`${line}\n`);
  expect(toml.match(/network_mode = "no-network"/g)).toHaveLength(2);
  expect(await file('a__b-1/environment/Dockerfile')).toMatch(
    /^FROM example.org\/a\/b:1\nWORKDIR \/testbed\n/,
  );
  expect(await file('a__b-1/tests/Dockerfile')).toMatch(
    /^FROM example.org\/a\/b:1\nWORKDIR \/testbed\nCOPY \. \/tests\/\n$/,
  );
  expect(JSON.parse(await file('a__b-1/tests/task.json'))).toMatchObject({
    rule: 'swebench',
    dialect: '4.1.0',
    parser: 'pytest',
  });
  expect(await file('a__b-1/solution/gold.diff')).toBe(ROW.patch);
  const shown = await readdir(join(out, 'a__b-1/environment'), { recursive: true, withFileTypes: true });
  const texts = await Promise.all(
    shown
      .filter((one) => one.isFile())
      .map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')),
  );
  expect([...texts, await file('a__b-1/instruction.md')].join('\n')).not.toMatch(/test_add|c\.py/);
  expect(await file('a__b-1/instruction.md')).toContain(ROW.problem_statement);
});

test('--network public gives the agent and the tests a public network', async () => {
  const { file } = await converted([ROW], '--network', 'public');
  expect((await file('a__b-1/task.toml')).match(/network_mode = "public"/g)).toHaveLength(2);
});

const JEST = { ...ROW, instance_id: 'a__b-2', log_parser: 'jest' };

test('an instance with an unsupported log parser is refused, or left out', async () => {
  const refused = await converted([ROW, JEST]);
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/1 of 2 \(a__b-2\): .*log parser jest of 4\.1\.0/),
  });
  const left = await converted([ROW, JEST], '--skip-ungradable');
  expect(left).toMatchObject({ code: 0, stderr: expect.stringMatching(/left out 1 of 2 instances: .*jest/) });
  expect(await readdir(left.out)).toEqual(['a__b-1']);
});

test.each([
  ['an image of this machine', { image: 'dir:/srv/tree' }, /folder or an archive of this machine/],
  [
    'a variable with a line break',
    { environment: { env: { A: 'x\ny' } }, plan: plan({ from: 'exit_code' }, 'exit_code') },
    /environment\.env\.A: /,
  ],
  ['a plan with a JUnit file', { plan: plan({ from: 'junit', file: '/x.xml' }) }, /outcomes from junit/],
  [
    'an unsupported verdict rule',
    { plan: plan({ from: 'log', dialect: '4.1.0', parser: 'pytest' }, 'junit_ids') },
    /rule junit_ids/,
  ],
])('%s is refused', async (_, changes, why) => {
  const { code, stderr } = await converted([{ ...ROW, ...changes }]);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
});

test('a shown id that is repeated or is not a folder name is refused', async () => {
  const shown = { ...ROW, plan: plan({ from: 'exit_code' }, 'exit_code'), shown_id: 'project-1' };
  const { code, stderr } = await converted([shown, { ...shown, instance_id: 'a__b-2' }]);
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/two instances .*project-1.*a__b-2/),
  });
  expect(await converted([{ ...shown, shown_id: '../x' }])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/shown_id/),
  });
});

function plan(outcomes: object, rule = 'swebench') {
  return { grader: 'own', script: 'true', outcomes, verdict: { rule } };
}
