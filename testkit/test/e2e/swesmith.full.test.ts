/** SWE-smith in all states of an instance's branch, in three languages, on Docker and rootfs, with patches good and bad. */
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type SmithRow, smithParse, smithProject } from '../../src/families/smith.ts';
import { SMITH_PROJECTS } from '../../src/families/smithprojects.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { answersIn, looksFor, openSmithFarm, type SmithFarm } from './smithfarm.ts';

let farm: SmithFarm;
beforeAll(async () => {
  farm = await openSmithFarm();
});
afterAll(() => farm[Symbol.asyncDispose]());

const NEW_FILE =
  'diff --git a/other.txt b/other.txt\nnew file mode 100644\n--- /dev/null\n+++ b/other.txt\n@@ -0,0 +1 @@\n+x = 1\n';
const brokenFor = (file: string): string =>
  `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1,1 +1,1 @@\n-nothing like it\n+x\n`;

/** Options of a run that hands in the same patch for each row. */
async function handingIn(dataset: string, rows: readonly SmithRow[], patch: string): Promise<string[]> {
  const path = `${dataset}.predictions`;
  const lines = rows.map(({ instance_id }) =>
    JSON.stringify({ instance_id, model_name_or_path: 'm', model_patch: patch }),
  );
  await writeFile(path, lines.map((line) => `${line}\n`).join(''));
  return ['--agent', 'patch', '--patches', path];
}

type Subject = {
  make(folder: string, runtime: 'docker' | 'rootfs'): Promise<SmithRow[]>;
  /** The file with the bug, and those with the tests that it fails. */
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
  let rows: SmithRow[];
  let dataset: string;
  beforeAll(async () => {
    rows = await make(join(farm.folder, folderName), runtime);
    dataset = await farm.write(`${folderName}.jsonl`, rows);
  });
  afterAll(() => {
    if (runtime === 'docker')
      execFileSync('docker', ['rmi', '-f', ...rows.map(({ image_name }) => image_name)]);
  });
  const each = (line: object) => rows.map(() => line);
  const run = (agent: string, options: string[], code = 0) =>
    farm.rollouts(dataset, runtime, agent, options, code);

  test('gold resolves each, nothing none', async () => {
    const clean = { grader: 'swesmith-9b74ac0', parser, trust: { level: 'clean', reasons: [] } };
    expect(await run('golden', ['--agent', 'golden'])).toMatchObject(
      each({ resolved: true, reward: 1, report: clean }),
    );
    expect(await run('noop', ['--agent', 'noop'])).toMatchObject(each({ resolved: false, reward: 0 }));
  });

  test('a patch of something else resolves none, a broken one does not apply', async () => {
    const other = await run('other', await handingIn(dataset, rows, NEW_FILE));
    expect(other).toMatchObject(each({ outcome: 'judged', resolved: false, reward: 0 }));
    const broken = await run('broken', await handingIn(dataset, rows, brokenFor(file)));
    expect(broken).toMatchObject(each({ resolved: false, report: { patch_state: 'not_applied' } }));
  });

  test('an agent finds the bug, and neither the tests nor the code without the bug', async () => {
    const [first] = rows;
    if (!first) throw new Error('there are no rows');
    const seen = await farm.observed(dataset, runtime, looksFor(first));
    for (const row of rows) {
      const output = seen.get(row.instance_id) ?? '';
      expect(output.split('\n')).toContain(`bug in ./${file}`);
      expect(answersIn(output, row, failing)).toEqual([]);
    }
  });

  test('health finds them sound', async () => {
    const args = ['health', '--dataset', dataset, '--runtime', runtime, '--concurrency', '2'];
    const health = await runCommand('swefarm', args, farm.env);
    expect(health.code, health.stderr).toBe(0);
    expect(health.stderr).toContain(`${rows.length} of ${rows.length} instances are healthy`);
  });
});

test('a bug that cannot be made is the fault of the instance, and no verdict', async () => {
  const [row] = await smithParse(join(farm.folder, 'unmade'), 'rootfs', ['absent']);
  const dataset = await farm.write('unmade.jsonl', [{ ...row, patch: brokenFor('parse.py') }]);
  for (const agent of ['golden', 'noop']) {
    expect(await farm.rollouts(dataset, 'rootfs', agent, ['--agent', agent], 10)).toMatchObject([
      { outcome: 'failed', resolved: null, reward: null, failure: { class: 'setup_failed' } },
    ]);
  }
});
