/**
 * `swefarm health` over one instance of each family that is made without an engine, in one file: sound ones, one whose gold does not
 * mend it, one whose tests are decided by chance, and one whose setup fails. Each is told from the others.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_NAMES, type FamilyInstance, makeFamilyInstances } from '../../src/families/instances.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

/** Its parsers are a package of others, which a tools image must hold. */
const SOUND = FAMILY_NAMES.filter((name) => name !== 'multi-swe');
const NEW_FILE =
  'diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n';

/** Two rounds that agree in all of these are less likely than one in ten million. */
const BY_CHANCE = Array.from({ length: 24 }, (_, index) => `tests/test_calc.py::test_${index}`);
const THROW_COINS = `python3 -c "
import random
for name in '${BY_CHANCE.join(' ')}'.split():
    print(random.SystemRandom().choice(['PASSED', 'FAILED']), name)
"`;

let folder: string;
let env: Record<string, string>;
let instances: Map<string, FamilyInstance>;

beforeAll(async () => {
  folder = temporaryFolder('e2e');
  const tools = join(folder, 'tools');
  await mkdir(tools);
  env = {
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_PARSER_IMAGE: `host+dir:${tools}`,
  };
  instances = await makeFamilyInstances(join(folder, 'trees'));
});

/** A row of a family, with other columns. */
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

type Finding = {
  instance_id: string;
  grader: string;
  times: number;
  gold_resolves: boolean;
  noop_resolves: boolean | null;
  flaky: string[];
};

test('health tells sound instances of each family from the broken, the flaky and those that cannot be set up', async () => {
  const dataset = join(folder, 'all.jsonl');
  const rows = [...SOUND.map((name) => instances.get(name)?.row), ...unsound()];
  await writeFile(dataset, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const args = ['health', '--dataset', dataset, '--runtime', 'rootfs', '--n-times', '2'];
  const { code, stdout, stderr } = await runCommand('swefarm', args, env);
  expect(code, stderr).toBe(10);
  expect(stderr).toContain(`${SOUND.length} of ${SOUND.length + 3} instances are healthy`);

  const found = new Map(
    stdout
      .split('\n')
      .filter(Boolean)
      .map((line): Finding => JSON.parse(line))
      .map((finding) => [finding.instance_id, finding]),
  );
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

test('dataset verify keeps the sound rows, and says of each other why it is out', async () => {
  const dataset = join(folder, 'some.jsonl');
  const sound = instances.get('swe-rebench-v2')?.row;
  await writeFile(dataset, [sound, ...unsound()].map((row) => `${JSON.stringify(row)}\n`).join(''));
  const output = join(folder, 'clean.jsonl');
  const args = ['dataset', 'verify', '--dataset', dataset, '--runtime', 'rootfs', '--times', '2'];
  const { code, stderr } = await runCommand('swefarm', [...args, '--output', output], env);
  expect(code, stderr).toBe(10);
  expect((await readFile(output, 'utf8')).trim()).toBe(JSON.stringify(sound));
  const why = (await readFile(join(folder, 'clean.findings.jsonl'), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { instance_id: string; why: string | null });
  expect(why).toMatchObject([
    { why: null },
    { instance_id: 'acme__calc-broken', why: 'gold is not resolved' },
    { instance_id: 'acme__calc-flaky', why: expect.stringContaining('flaky') },
    { instance_id: 'acme_calc_pr7', why: expect.stringContaining('setup_failed (') },
  ]);
  expect(stderr).toContain('1 out: no evaluation came to a verdict: setup_failed\n');
});
