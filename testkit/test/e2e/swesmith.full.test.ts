/** Tests SWE-smith with all states of an instance's branch, in three languages, on Docker and rootfs, with right and wrong patches. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SmithRow, smithParse, smithProject } from '../../src/families/smith.ts';
import { SMITH_PROJECTS } from '../../src/families/smithprojects.ts';
import { writeLines } from '../../src/lines.ts';
import { misfit, NEW_FILE, predictionsOf } from './predictions.ts';
import { openScene } from './scene.ts';
import { answersIn, looksFor, observed, smithRollouts } from './smithfarm.ts';

const scene = openScene();

type Subject = {
  make(folder: string, runtime: 'docker' | 'rootfs'): Promise<SmithRow[]>;
  /** The file with the bug. `failing`: the files with the tests that fail. */
  file: string;
  failing: string[];
  parser: string;
};
const inTwoStates =
  (language: keyof typeof SMITH_PROJECTS): Subject['make'] =>
  (folder, runtime) =>
    smithProject(folder, runtime, language, ['absent', 'tests removed']);

const SUBJECTS: Readonly<Record<string, Subject>> = {
  'the example parse': {
    make: smithParse,
    ...{ file: 'parse.py', failing: ['tests/test_parse.py'], parser: 'python-pytest-v' },
  },
  "chi, with Debian's golang": {
    make: inTwoStates('Go'),
    ...{ file: SMITH_PROJECTS.Go.bug.file, failing: SMITH_PROJECTS.Go.failing, parser: 'go-test' },
  },
  'marked, a package of npm': {
    make: inTwoStates('JavaScript'),
    ...{ file: SMITH_PROJECTS.JavaScript.bug.file, failing: SMITH_PROJECTS.JavaScript.failing },
    parser: 'marked',
  },
};
const CASES = (['docker', 'rootfs'] as const).flatMap((runtime) =>
  Object.keys(SUBJECTS).map((name) => [name, runtime] as const),
);

describe.each(CASES)("%s in SWE-smith's form, on %s", (name, runtime) => {
  const { make, file, failing, parser } = SUBJECTS[name] as Subject;
  const folderName = `${name.replaceAll(/\W+/g, '-')}.${runtime}`;
  const dataset = join(scene.folder, `${folderName}.jsonl`);
  const run = { scene, dataset, runtime };
  let rows: SmithRow[];
  beforeAll(async () => {
    rows = await make(join(scene.folder, folderName), runtime);
    await writeLines(dataset, rows);
  });
  afterAll(() => {
    if (runtime === 'docker')
      execFileSync('docker', ['rmi', '-f', ...rows.map(({ image_name }) => image_name)]);
  });
  const each = (line: object) => rows.map(() => line);
  /** Evaluates the same patch for each row and returns the lines. */
  const handedIn = async (name: string, patch: string) => {
    const ids = rows.map(({ instance_id }) => instance_id);
    const path = await writeLines(`${dataset}.predictions`, predictionsOf(ids, patch));
    return await smithRollouts(run, 'patch', ['--patches', path], { name });
  };

  test('gold resolves each, an empty patch none', async () => {
    const clean = { grader: 'swesmith-9b74ac0', parser, trust: { level: 'clean', reasons: [] } };
    expect(await smithRollouts(run, 'golden')).toMatchObject(
      each({ resolved: true, reward: 1, report: clean }),
    );
    expect(await smithRollouts(run, 'noop')).toMatchObject(each({ resolved: false, reward: 0 }));
  });

  test('an unrelated patch resolves none, and a broken patch does not apply', async () => {
    const other = await handedIn('other', NEW_FILE);
    expect(other).toMatchObject(each({ outcome: 'judged', resolved: false, reward: 0 }));
    const broken = await handedIn('broken', misfit(file));
    expect(broken).toMatchObject(each({ resolved: false, report: { patch_state: 'not_applied' } }));
  });

  test('an agent finds the bug, and neither the tests nor the code without the bug', async () => {
    const [first] = rows;
    if (!first) throw new Error('there are no rows');
    const seen = await observed(run, looksFor(first));
    for (const row of rows) {
      const output = seen.get(row.instance_id) ?? '';
      expect(output.split('\n')).toContain(`bug in ./${file}`);
      expect(answersIn(output, row, failing)).toEqual([]);
    }
  });

  test('health finds them sound', async () => {
    const health = await scene.swefarm`health --dataset ${dataset} --runtime ${runtime} --concurrency 2`;
    expect(health.code, health.stderr).toBe(0);
    expect(health.stderr).toContain(`${rows.length} of ${rows.length} instances are healthy`);
  });
});

test('a bug patch that does not apply is a failure of the instance', async () => {
  const [row] = await smithParse(join(scene.folder, 'unmade'), 'rootfs', ['absent']);
  const unmade = [{ ...row, patch: misfit('parse.py') }];
  const dataset = await writeLines(join(scene.folder, 'unmade.jsonl'), unmade);
  for (const agent of ['golden', 'noop']) {
    expect(await smithRollouts({ scene, dataset, runtime: 'rootfs' }, agent, [], { code: 10 })).toMatchObject(
      [{ outcome: 'failed', resolved: null, reward: null, failure: { class: 'setup_failed' } }],
    );
  }
});
