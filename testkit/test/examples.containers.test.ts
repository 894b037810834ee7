/** Tests the examples: their tests before and after gold, in Docker and in a bare tree, and the scripted policy's variants. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type BuiltExample, type BuiltExamples, buildExamples } from '../src/examples/build.ts';
import type { ExampleRow } from '../src/examples/row.ts';
import { judge, readStatuses, type Statuses, testStatuses } from '../src/examples/verify.ts';
import { parseLines } from '../src/lines.ts';
import { loadScript } from '../src/policy/script.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const EXAMPLES = resolve(import.meta.dirname, '../../examples');
const IDS = [
  'cpburnz__pathspec-0.10.2',
  'pallets__markupsafe-3.0.2',
  'r1chardj0n3s__parse-1.20.2',
  'sdispater__tomlkit-0.11.5',
];
const out = temporaryFolder('examples');
let built: BuiltExamples;

beforeAll(async () => {
  built = await buildExamples({ for: 'both', out });
});

const exampleOf = (id: string): BuiltExample => {
  const example = built.examples.find(({ recipe }) => recipe.instance_id === id);
  if (!example) throw new Error(`${id} was not built`);
  return example;
};
const rowOf = (id: string): ExampleRow => {
  const row = built.rows.find((one) => one.instance_id === id);
  if (!row) throw new Error(`${id} was not built`);
  return row;
};

/** Runs bash scripts one after the other in one container without a network. Returns the statuses of the tests at the end. */
function inContainer(row: ExampleRow, scripts: readonly string[]): Statuses {
  const create = ['run', '-d', '--rm', '--network', 'none', '--label', 'swefarm.test=examples'];
  const id = execFileSync('docker', [...create, row.image, 'sleep', '3600'], { encoding: 'utf8' }).trim();
  try {
    const here = 'source /opt/miniconda3/bin/activate && conda activate testbed && cd /testbed\n';
    for (const script of scripts) spawnSync('docker', ['exec', '-i', id, 'bash'], { input: here + script });
    const files = [...row.test_patch.matchAll(/^diff --git a\/\S+ b\/(\S+)$/gm)].map((found) => found[1]);
    const judged = [
      row.install ?? ':',
      `git checkout -q ${row.base_commit} ${files.join(' ')}`,
      `git apply - <<'END_OF_PATCH'\n${row.test_patch}END_OF_PATCH`,
      `${row.test_cmd} ${files.join(' ')}`,
    ];
    const ran = spawnSync('docker', ['exec', '-i', id, 'bash'], {
      input: here + judged.join('\n'),
      encoding: 'utf8',
    });
    return readStatuses(ran.stdout);
  } finally {
    execFileSync('docker', ['rm', '-f', id], { stdio: 'ignore' });
  }
}

/** Returns the problems of an example in its own tree. */
async function problemsOf(example: BuiltExample): Promise<string[]> {
  const { signal } = new AbortController();
  const before = await testStatuses(example, false, signal);
  return judge(example.recipe, before, await testStatuses(example, true, signal)).problems;
}

const resolved = (row: ExampleRow, statuses: Statuses): boolean =>
  [...row.FAIL_TO_PASS, ...row.PASS_TO_PASS].every((id) => statuses[id] === 'PASSED');

test('every shipped example is built, a second build takes under 2 s', async () => {
  expect(built.examples.map(({ recipe }) => recipe.instance_id)).toEqual(IDS);
  expect(built.skipped).toEqual([]);
  const started = performance.now();
  const again = await buildExamples({ for: 'both', out });
  expect(performance.now() - started).toBeLessThan(2000);
  expect(again.rows).toEqual(built.rows);
  const names = (path: string | null) =>
    parseLines<ExampleRow>(readFileSync(path ?? '', 'utf8')).map(({ image }) => image);
  expect(names(again.files.docker)).toEqual(IDS.map((id) => `swefarm/example.${id}:latest`));
  for (const name of names(again.files.rootfs)) expect(name).toMatch(/^dir:\//);
});

describe.each(IDS)('%s', (id) => {
  test('in Docker: FAIL_TO_PASS fail before gold, all pass after', () => {
    const row = rowOf(id);
    const gold = `git apply - <<'END_OF_PATCH'\n${row.patch}END_OF_PATCH`;
    const verdict = judge(exampleOf(id).recipe, inContainer(row, []), inContainer(row, [gold]));
    expect(verdict.problems).toEqual([]);
    expect(verdict.FAIL_TO_PASS).toEqual(row.FAIL_TO_PASS);
    expect(verdict.PASS_TO_PASS).toEqual(row.PASS_TO_PASS);
  });

  test('in its own tree: the same', async () => {
    expect(await problemsOf(exampleOf(id))).toEqual([]);
  });

  test('the scripted policy: variants 0 and 4 resolve, 1 does not', () => {
    const row = rowOf(id);
    const script = loadScript(join(EXAMPLES, 'policy/examples.yaml'));
    const conversation = script.conversations.find(({ match }) => row.problem_statement.includes(match));
    const outcome = (variant: number) => {
      const turns = conversation?.variants[variant] ?? [];
      return resolved(
        row,
        inContainer(
          row,
          turns.flatMap((turn) => turn.command ?? []),
        ),
      );
    };
    expect([0, 1, 4].map(outcome)).toEqual([true, false, true]);
  });
});

test("over the host's own root: a pure example and one that compiles", async () => {
  const ids = ['pallets__markupsafe-3.0.2', 'r1chardj0n3s__parse-1.20.2'];
  const host = await buildExamples({ ids, host: true, out: join(out, 'host') });
  expect(host.files.docker).toBeNull();
  for (const [at, example] of host.examples.entries()) {
    expect(host.rows[at]?.image).toMatch(/^host\+dir:\//);
    expect(await problemsOf(example)).toEqual([]);
  }
});
