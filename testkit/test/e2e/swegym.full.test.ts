/**
 * Tests rows in SWE-Gym's form, without test command and parser, for four of its repositories: real bugs of released sources, in images
 * with SWE-Gym's layout. The table of SWE-Gym's fork defines the tests. Runs gold, no change and a broken patch on rootfs.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { words } from '../../src/launchers/commands.ts';
import { writeLines } from '../../src/lines.ts';
import { misfit, predictionsOf } from './predictions.ts';
import { type Line, openScene } from './scene.ts';

/** Versions in SWE-Gym's rows, and the fork's parser for each repository. */
const GIVEN: Readonly<Record<string, { version: string; parser: string }>> = {
  'dask__dask-2023.9.2': { version: '2023.9', parser: 'pytest' },
  'getmoto__moto-5.0.5': { version: '5.0', parser: 'pytest' },
  'pydantic__pydantic-1.10.12': { version: '1.10', parser: 'pytest_pydantic' },
  'python__mypy-1.7.1': { version: '1.7', parser: 'pytest' },
};
const IDS = Object.keys(GIVEN);

const scene = openScene();
const dataset = join(scene.folder, 'swegym.jsonl');

beforeAll(async () => {
  const examplesDir = join(import.meta.dirname, '../../../examples/swegym');
  const built = await buildExamples({ examplesDir, for: 'rootfs', out: scene.folder });
  const rows = built.rows.map(({ test_cmd: _c, log_parser: _p, install: _i, family: _f, ...row }) => ({
    ...row,
    version: GIVEN[row.instance_id]?.version,
  }));
  expect(rows.map(({ instance_id }) => instance_id)).toEqual(IDS);
  await writeLines(dataset, rows);
});

/** Evaluates each row once and returns the lines by id. */
const evaluate = (agent: string, more: readonly string[] = []): Promise<Line[]> =>
  scene.rollouts(
    agent,
    words`--dataset ${dataset} --runtime rootfs --concurrency 1 --agent ${agent} ${more}`,
  );

describe('dask, moto, pydantic and mypy as SWE-Gym grades them', () => {
  const each = (line: object) => IDS.map((instance_id) => ({ instance_id, outcome: 'judged', ...line }));

  test('gold resolves each, by the grader and the parser of the fork', async () => {
    expect(await evaluate('golden')).toMatchObject(
      IDS.map((instance_id) => ({
        instance_id,
        resolved: true,
        report: { grader: 'swegym', parser: GIVEN[instance_id]?.parser, evaluation: 'completed' },
      })),
    );
  });

  test('an empty patch resolves none', async () => {
    expect(await evaluate('noop')).toMatchObject(each({ resolved: false }));
  });

  test('a patch that does not apply resolves none', async () => {
    const given = predictionsOf(IDS, misfit('setup.py'));
    const patches = await writeLines(join(scene.folder, 'nowhere.predictions'), given);
    expect(await evaluate('patch', ['--patches', patches])).toMatchObject(
      each({ resolved: false, report: { patch_state: 'not_applied' } }),
    );
  });

  test('health finds them sound', async () => {
    const { code, stderr } = await scene.swefarm`health --dataset ${dataset} --runtime rootfs`;
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`${IDS.length} of ${IDS.length} instances are healthy`);
  });
});
