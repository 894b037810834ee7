/**
 * Tests `swefarm health` on one file with an instance of each family that is made without an engine: healthy instances, one whose gold
 * does not fix it, one with random tests, and one whose setup fails. Each kind gets its own finding.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_NAMES, type FamilyInstance, makeFamilyInstances } from '../../src/families/instances.ts';
import { parseLines, readLines, writeLines } from '../../src/lines.ts';
import { NEW_FILE } from './predictions.ts';
import { type Finding, openScene } from './scene.ts';

/** All families except Multi-SWE-bench, whose parsers are a separate package in a tools image. */
const SOUND = FAMILY_NAMES.filter((name) => name !== 'multi-swe');

/** Random tests: the probability that two rounds agree in all of them is below one in ten million. */
const BY_CHANCE = Array.from({ length: 24 }, (_, index) => `tests/test_calc.py::test_${index}`);
const THROW_COINS = `python3 -c "
import random
for name in '${BY_CHANCE.join(' ')}'.split():
    print(random.SystemRandom().choice(['PASSED', 'FAILED']), name)
"`;

const scene = openScene();
const { folder } = scene;
let instances: Map<string, FamilyInstance>;

beforeAll(async () => {
  const tools = join(folder, 'tools');
  await mkdir(tools);
  scene.env.SWEFARM_PARSER_IMAGE = `host+dir:${tools}`;
  instances = await makeFamilyInstances(join(folder, 'trees'));
});

function changed(family: string, instance_id: string, columns: Record<string, unknown>) {
  return { ...instances.get(family)?.row, instance_id, ...columns };
}

function unsound(): Record<string, unknown>[] {
  const { install_config, image } = instances.get('swe-rebench-v2')?.row ?? {};
  return [
    changed('swe-rebench-v2', 'acme__calc-broken', { patch: NEW_FILE }),
    changed('swe-rebench-v2', 'acme__calc-flaky', {
      FAIL_TO_PASS: BY_CHANCE,
      PASS_TO_PASS: [],
      install_config: { ...(install_config as object), test_cmd: [THROW_COINS] },
    }),
    {
      ...{ instance_id: 'acme_calc_pr7', user: 'acme', repo: 'calc', workdir: '/calc', image_url: image },
      ...{ parent_commit: 'd'.repeat(40), patch: NEW_FILE, f2p_patch: '', f2p_script: 'import calc\n' },
      ...{ FAIL_TO_PASS: ['t.py::test'], PASS_TO_PASS: [], problem_statement: 'add subtracts.' },
    },
  ];
}

test('health distinguishes sound, broken and flaky instances and failed setups in each family', async () => {
  const rows = [...SOUND.map((name) => instances.get(name)?.row), ...unsound()];
  const dataset = await writeLines(join(folder, 'all.jsonl'), rows);
  const { code, stdout, stderr } =
    await scene.swefarm`health --dataset ${dataset} --runtime rootfs --n-times 2`;
  expect(code, stderr).toBe(10);
  expect(stderr).toContain(`${SOUND.length} of ${SOUND.length + 3} instances are healthy`);

  const found = new Map(parseLines<Finding>(stdout).map((finding) => [finding.instance_id, finding]));
  for (const name of SOUND) {
    const finding = found.get(instances.get(name)?.id ?? '');
    const sound = { times: 2, gold_resolves: true, noop_resolves: false, flaky: [] };
    expect(finding, name).toMatchObject(sound);
  }
  expect(new Set(SOUND.map((name) => found.get(instances.get(name)?.id ?? '')?.grader)).size).toBeGreaterThan(
    4,
  );
  expect(found.get('acme__calc-broken')).toMatchObject({ gold_resolves: false, flaky: [] });
  expect(found.get('acme__calc-flaky')?.flaky.length).toBeGreaterThan(0);
  expect(stderr).toContain('flaky: acme__calc-flaky: tests/test_calc.py::test_');
  expect(stderr).not.toContain('flaky: acme__calc-broken');
  expect(found.has('acme_calc_pr7')).toBe(false);
  expect(stderr).toMatch(/no verdict: acme_calc_pr7: setup_failed: .*check out the parent commit/);
});

test('dataset verify writes sound rows, and names why others are excluded', async () => {
  const sound = instances.get('swe-rebench-v2')?.row;
  const dataset = await writeLines(join(folder, 'some.jsonl'), [sound, ...unsound()]);
  const output = join(folder, 'clean.jsonl');
  const { code, stderr } =
    await scene.swefarm`dataset verify --dataset ${dataset} --runtime rootfs --times 2 --output ${output}`;
  expect(code, stderr).toBe(10);
  expect((await readFile(output, 'utf8')).trim()).toBe(JSON.stringify(sound));
  expect(await readLines(join(folder, 'clean.findings.jsonl'))).toMatchObject([
    { why: null },
    { instance_id: 'acme__calc-broken', why: 'gold is not resolved' },
    { instance_id: 'acme__calc-flaky', why: expect.stringContaining('flaky') },
    { instance_id: 'acme_calc_pr7', why: expect.stringContaining('setup_failed (') },
  ]);
  expect(stderr).toContain('1 out: no evaluation came to a verdict: setup_failed\n');
});
