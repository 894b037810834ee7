/** Rows in the exact form of each family: the instance, the parts that the agent sees, and the refusals. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { planEvaluation } from '@swefarm/grading';
import type { Instance } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_ROWS, UNGRADABLE_ROWS, writeProFiles } from '../../test/familyrows.ts';
import { openRow, toInstance } from '../row.ts';
import { readRows } from '../source.ts';
import { FAMILIES } from './registry.ts';

let familyFiles: string;
beforeAll(async () => {
  familyFiles = temporaryFolder('family');
  await writeProFiles(familyFiles);
});

function read(row: Record<string, unknown>): Instance {
  const found = toInstance('line 1', row, { familyFiles });
  if ('problems' in found) throw new Error(JSON.stringify(found.problems));
  return found.instance;
}

test.each(Object.entries(FAMILY_ROWS))('a row of %s: image, environment, plan', (_name, row) => {
  const { patch: _patch, test_patch: _tests, plan, ...instance } = read(row);
  const { outcomes } = plan ?? {};
  // The texts of programs belong to `grading`.
  const shown = outcomes?.from === 'program' ? { ...outcomes, files: Object.keys(outcomes.files) } : outcomes;
  expect({ ...instance, plan: { ...plan, outcomes: shown } }).toMatchSnapshot();
});

test.each(Object.entries(FAMILY_ROWS))(
  'a row of %s is planned by its own plan, which this version knows',
  (_name, row) => {
    const instance = read(row);
    expect(planEvaluation(instance)).toEqual(instance.plan);
  },
);

test('each family that writes a plan has a row here', () => {
  const families = Object.values(FAMILY_ROWS).map((row) => read(row).family);
  const planned = FAMILIES.map(({ name }) => name).filter(
    (name) => !['swegym', 'custom', 'swesmith', 'harbor'].includes(name),
  );
  expect(new Set(families)).toEqual(new Set(planned));
});

const GOLD = '-    return a - b\n+    return a + b\n';
test.each(Object.entries(FAMILY_ROWS))(
  'gold of %s is the patch that mends, and nothing of it is shown',
  (name, row) => {
    const instance = read(row);
    expect(instance.patch).toContain(GOLD);
    const { problem_statement, hints_text, repo, shown_id, instance_id } = instance;
    const shown = [problem_statement, hints_text, repo, shown_id ?? instance_id].join('\n');
    for (const secret of ['fedcba09', 'a + b\n', 'test_add', 'Changes the sign', 'The commit adds'])
      expect(shown, name).not.toContain(secret);
    expect(problem_statement).toMatch(/add subtracts/);
  },
);

test.each(Object.entries(UNGRADABLE_ROWS))('refused by name: %s', (reason, row) => {
  const found = toInstance('line 1', row);
  expect('problems' in found && found.problems.map(({ ungradable }) => ungradable)).toEqual([reason]);
});

test('a missing image tag is derived as upstream derives it', () => {
  const tag = (repo: string, instance_id: string) =>
    read({
      ...FAMILY_ROWS['swe-bench-pro'],
      repo,
      instance_id,
      dockerhub_tag: undefined,
      'run_script.sh': 'x',
      'parser.py': 'x',
    }).image;
  const fix = 'c'.repeat(40);
  expect(tag('Acme/Calc', `instance_Acme__Calc-${fix}-vnan`)).toBe(
    `jefzda/sweap-images:acme.calc-Acme__Calc-${fix}`,
  );
  expect(tag('element-hq/element-web', `instance_element-hq__element-web-${fix}-vnan`)).toBe(
    `jefzda/sweap-images:element-hq.element-element-hq__element-web-${fix}`,
  );
  const whole = 'element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan';
  expect(tag('element-hq/element-web', `instance_${whole}`)).toBe(
    `jefzda/sweap-images:element-hq.element-web-${whole}`,
  );
  const owner = 'a'.repeat(30);
  const long = tag(`${owner}/calc`, `instance_${owner}__calc-${fix}-v${'d'.repeat(40)}`);
  expect(long.slice('jefzda/sweap-images:'.length)).toHaveLength(128);
});

type Wrapped = { responses_create_params: { metadata: { instance_dict: string } } };
test("nv-internal-1: NeMo's lists of tests win over the row's, and one may be empty", () => {
  const { metadata } = (FAMILY_ROWS['nemotron, nv-internal-1'] as Wrapped).responses_create_params;
  const wrapped = (more: Record<string, unknown>) => {
    const instance_dict = JSON.stringify({ ...JSON.parse(metadata.instance_dict), ...more });
    return { responses_create_params: { input: [], metadata: { ...metadata, instance_dict } } };
  };
  const lists = (more: Record<string, unknown>) => {
    const { FAIL_TO_PASS, PASS_TO_PASS, plan } = read(wrapped(more));
    expect(plan?.grader).toBe('nemo-nv-internal-1');
    return [FAIL_TO_PASS, PASS_TO_PASS];
  };
  const [failing, passing] = lists({});
  expect(lists({ fail_to_pass_select: '["chosen"]' })).toEqual([['chosen'], passing]);
  expect(lists({ pass_to_pass_select: ['kept'] })).toEqual([failing, ['kept']]);
  // An empty list also takes precedence.
  expect(lists({ pass_to_pass_select: '[]' })).toEqual([failing, []]);
  const none = toInstance('line 1', wrapped({ fail_to_pass_select: [], pass_to_pass_select: [] }));
  expect(none).toMatchObject({ problems: [{ expected: 'at least one test' }] });
});

test('a SWE-Lego row with an image of a private registry is not read as SWE-rebench', () => {
  const { image_name, ...row } = FAMILY_ROWS['swe-lego'] ?? {};
  const mirrored = { ...row, image_name: `registry.example:5000/${String(image_name)}` };
  expect(read(mirrored)).toMatchObject({ family: 'swe-lego', image: `${mirrored.image_name}:latest` });
});

test('OpenSWE: in a row without patches, the script may contain tests and no code', () => {
  const { patch: _patch, test_patch: _tests, ...row } = FAMILY_ROWS['open-swe'] ?? {};
  const changing = (file: string) =>
    toInstance('line 1', {
      ...row,
      eval_script: `git apply <<'EOF'\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-a\n+b\nEOF\necho OPENSWE_EXIT_CODE=$?\n`,
    });
  for (const file of ['tests/data/a.json', 'pkg/test_a.py', 'pkg/a_test.py', 'conftest.py'])
    expect(changing(file), file).toHaveProperty('instance');
  for (const file of ['pkg/latest.py', 'contest/a.py', 'a.py', 'pkg/attestation.py'])
    expect(changing(file), file).toMatchObject({ problems: [{ field: 'eval_script' }] });
});

test("SWE-rebench V2 uses the rule equal, or subset by option or by NeMo's wrapper", () => {
  const row = FAMILY_ROWS['swe-rebench-v2'] ?? {};
  const rule = (given: Record<string, unknown>, options = {}) => {
    const found = toInstance('line 1', given, options);
    return 'instance' in found
      ? [found.instance.plan?.verdict.rule, found.instance.plan?.grader]
      : found.problems;
  };
  expect(rule(row)).toEqual(['equal', 'swe-rebench-v2']);
  expect(rule(row, { verdict: 'subset' })).toEqual(['subset', 'swe-rebench-v2-subset']);
  const metadata = {
    instance_id: 'acme__calc-7',
    dataset_name: 'SWE-rebench-V2',
    instance_dict: JSON.stringify(row),
  };
  expect(rule({ responses_create_params: { input: [], metadata } })).toEqual([
    'subset',
    'swe-rebench-v2-subset',
  ]);
});

const given = new URL('../../../../shared/rows/', import.meta.url);
test('each real row: the image, the grader, and a hash of the plan, or why there is none', async ({
  skip,
}) => {
  skip(!existsSync(given), '../shared/rows is not beside the repository');
  const seen: Record<string, string> = {};
  let rows = 0;
  for (const file of readdirSync(given)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()) {
    for await (const raw of readRows(new URL(file, given).pathname)) {
      if ('problem' in raw) throw new Error(`${file}: ${raw.where}`);
      rows += 1;
      const row = openRow(raw.where, raw.value);
      const found = row.read();
      // `summary` makes a plan for a row without a plan.
      seen[`${file} ${String(row.id)}`] =
        'instance' in found
          ? `${found.instance.family} ${found.instance.image} ${summary(found.instance)}`
          : found.problems.map(({ field, ungradable }) => ungradable ?? `no ${field}`).join('; ');
    }
  }
  expect(Object.keys(seen)).toHaveLength(rows);
  expect(seen).toMatchSnapshot();
});

function summary(instance: Instance): string {
  const plan = planEvaluation(instance);
  const { outcomes } = plan;
  const parser = outcomes.from === 'log' ? `${outcomes.dialect}/${outcomes.parser}` : outcomes.from;
  const text = JSON.stringify([plan, instance.environment ?? null]);
  return `${plan.grader} ${parser} ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}
