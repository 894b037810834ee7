/**
 * Tests `swefarm health` on instances of every family, with the parser image of Multi-SWE-bench and a real package for families whose
 * images have a conda environment: each instance unchanged, and with a gold patch that does not fix it.
 */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { makeFamilyInstances } from '../../src/families/instances.ts';
import { smithParse } from '../../src/families/smith.ts';
import { parseLines, writeLines } from '../../src/lines.ts';
import { makeExampleInstances } from './exampleinstances.ts';
import { NEW_FILE } from './predictions.ts';
import { type Finding, openScene } from './scene.ts';

type Row = Record<string, unknown>;

const scene = openScene();
const { folder } = scene;
/** Rows by the name of their form. */
const rows = new Map<string, Row>();

beforeAll(async () => {
  const tools = join(folder, 'tools');
  execFileSync('sh', [resolve(import.meta.dirname, '../../../examples/parserimage/folder.sh'), tools], {
    stdio: 'pipe',
  });
  scene.env.SWEFARM_PARSER_IMAGE = `host+dir:${tools}`;
  await mkdir(join(folder, 'forms'));
  for (const [name, { row }] of await makeFamilyInstances(join(folder, 'trees'))) rows.set(name, row);
  for (const [name, { row }] of await makeExampleInstances(join(folder, 'forms'), 'rootfs'))
    rows.set(name, row);
  const [smith] = await smithParse(join(folder, 'smith'), 'rootfs', ['tests removed']);
  if (smith) rows.set('swesmith', smith);
});

/** Runs `swefarm health`, and returns the findings and the command's messages. */
async function examined(name: string, dataset: readonly Row[]) {
  const path = await writeLines(join(folder, `${name}.jsonl`), dataset);
  const { code, stdout, stderr } =
    await scene.swefarm`health --dataset ${path} --runtime rootfs --health ${join(folder, name)}`;
  return { code, stderr, findings: parseLines<Finding>(stdout) };
}

/** Graders of the healthy instances. */
const GRADERS = [
  ...['multi-swe-bench', 'nemo-nv-internal-1', 'nemo-r2e-gym', 'open-swe', 'r2e-gym', 'scale-swe'],
  ...['swe-bench-live', 'swe-bench-pro', 'swe-lego', 'swe-rebench', 'swe-rebench-v2', 'swesmith-9b74ac0'],
];

test('health finds an instance of every family sound', async () => {
  const { code, stderr, findings } = await examined('sound', [...rows.values()]);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(`${rows.size} of ${rows.size} instances are healthy`);
  for (const finding of findings) {
    expect(finding, finding.instance_id).toMatchObject({ gold_resolves: true, noop_resolves: false });
  }
  expect([...new Set(findings.map(({ grader }) => grader))].toSorted()).toEqual(GRADERS);
});

test('health finds wrong gold in every family with a column of gold patches', async () => {
  const changed = [...rows.values()].flatMap((row) => {
    const [column] = ['patch', 'fix_patch'].filter((name) => typeof row[name] === 'string');
    // The patch of a SWE-smith row adds the bug, so its rows are not changed.
    return column === undefined || String(row.repo).startsWith('swesmith/')
      ? []
      : [{ ...row, [column]: NEW_FILE }];
  });
  expect(changed.length).toBeGreaterThan(8);
  const { code, stderr, findings } = await examined('spoiled', changed);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain(`0 of ${changed.length} instances are healthy`);
  for (const finding of findings) {
    expect(finding, finding.instance_id).toMatchObject({ gold_resolves: false, noop_resolves: false });
  }
});
