/**
 * Rows of SWE-Gym in its own form, without a command or a parser of their own, for four of its repositories: real bugs of released
 * sources, in images laid out as SWE-Gym's are. The fork's table says how they are tested; gold, nothing and a broken patch on rootfs.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

/** Versions as the rows of SWE-Gym have them, and the parser that the fork has for the repository. */
const GIVEN: Readonly<Record<string, { version: string; parser: string }>> = {
  'dask__dask-2023.9.2': { version: '2023.9', parser: 'pytest' },
  'getmoto__moto-5.0.5': { version: '5.0', parser: 'pytest' },
  'pydantic__pydantic-1.10.12': { version: '1.10', parser: 'pytest_pydantic' },
  'python__mypy-1.7.1': { version: '1.7', parser: 'pytest' },
};
const IDS = Object.keys(GIVEN);
const NOWHERE =
  'diff --git a/setup.py b/setup.py\n--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-not there\n+x\n';

type Line = {
  instance_id: string;
  outcome: string;
  resolved: boolean | null;
  report: { grader: string; parser: string; patch_state: string; evaluation: string } | null;
};

let folder: string;
let env: Record<string, string>;
let dataset: string;

beforeAll(async () => {
  folder = temporaryFolder('gym');
  env = { SWEFARM_STATE_DIR: join(folder, 'state'), SWEFARM_SCRATCH_DIR: join(folder, 'scratch') };
  const examplesDir = join(import.meta.dirname, '../../../examples/swegym');
  const built = await buildExamples({ examplesDir, for: 'rootfs', out: folder });
  const rows = built.rows.map(({ test_cmd: _c, log_parser: _p, install: _i, family: _f, ...row }) => ({
    ...row,
    version: GIVEN[row.instance_id]?.version,
  }));
  expect(rows.map(({ instance_id }) => instance_id)).toEqual(IDS);
  dataset = join(folder, 'swegym.jsonl');
  await writeFile(dataset, lines(rows));
});

const lines = (rows: readonly object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

/** One evaluation of each row, by id. */
async function evaluate(name: string, agent: string[], code: number): Promise<Line[]> {
  const output = join(folder, `${name}.jsonl`);
  const args = ['rollout', '--dataset', dataset, '--runtime', 'rootfs', '--concurrency', '1'];
  const ended = await runCommand('swefarm', [...args, ...agent, '--output', output], env);
  expect(ended.code, ended.stderr).toBe(code);
  return (await readFile(output, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line): Line => JSON.parse(line))
    .sort((a, b) => (a.instance_id < b.instance_id ? -1 : 1));
}

describe('dask, moto, pydantic and mypy as SWE-Gym grades them', () => {
  const each = (line: object) => IDS.map((instance_id) => ({ instance_id, outcome: 'judged', ...line }));

  test('gold resolves each, by the grader and the parser of the fork', async () => {
    expect(await evaluate('gold', ['--agent', 'golden'], 0)).toMatchObject(
      IDS.map((instance_id) => ({
        instance_id,
        resolved: true,
        report: { grader: 'swegym', parser: GIVEN[instance_id]?.parser, evaluation: 'completed' },
      })),
    );
  });

  test('nothing resolves none', async () => {
    expect(await evaluate('noop', ['--agent', 'noop'], 0)).toMatchObject(each({ resolved: false }));
  });

  test('a patch that does not apply resolves none', async () => {
    const patches = join(folder, 'nowhere.predictions');
    const given = IDS.map((instance_id) => ({
      instance_id,
      model_name_or_path: 'm',
      model_patch: NOWHERE,
    }));
    await writeFile(patches, lines(given));
    expect(await evaluate('nowhere', ['--agent', 'patch', '--patches', patches], 0)).toMatchObject(
      each({ resolved: false, report: { patch_state: 'not_applied' } }),
    );
  });

  test('health finds them sound', async () => {
    const { code, stderr } = await runCommand(
      'swefarm',
      ['health', '--dataset', dataset, '--runtime', 'rootfs'],
      env,
    );
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(`${IDS.length} of ${IDS.length} instances are healthy`);
  });
});
