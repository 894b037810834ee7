/**
 * Tests `swefarm eval` and `swefarm regrade` on the examples: complete files of the harness, invalid predictions, resuming by
 * report.json, repetitions, and repeated evaluations that failed.
 */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import type { ExampleRow } from '../../src/examples/row.ts';
import { words } from '../../src/launchers/commands.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { type Line, openScene } from './scene.ts';

const IDS = ['r1chardj0n3s__parse-1.20.2', 'pallets__markupsafe-3.0.2', 'sdispater__tomlkit-0.11.5'] as const;
const [PARSE, MARKUPSAFE, TOMLKIT] = IDS;

const scene = openScene();
const { folder } = scene;
let dataset = '';
let rows: ExampleRow[];

beforeAll(async () => {
  const built = await buildExamples({ ids: IDS, for: 'docker', out: folder });
  dataset = built.files.default;
  rows = built.rows;
});

const row = (id: string): ExampleRow => {
  const found = rows.find(({ instance_id }) => instance_id === id);
  if (!found) throw new Error(`${id} was not built`);
  return found;
};
const logs = (): string => join(folder, 'logs');
const at = (run: string, model: string, id: string, file = ''): string => join(logs(), run, model, id, file);
const text = (path: string): Promise<string> => readFile(path, 'utf8');
const json = async (path: string): Promise<unknown> => JSON.parse(await text(path));

const evaluate = (runId: string, predictions: string, more: readonly string[] = []) =>
  scene.swefarm`eval --dataset ${dataset} --predictions ${predictions} --run-id ${runId} --logs-dir ${logs()}
    --report-dir ${folder} --runtime docker --max-workers 2 ${more}`;

const prediction = (instance_id: string, model_patch: string | null, model_name_or_path = 'org/model') =>
  JSON.stringify({ instance_id, model_name_or_path, model_patch });

/** Returns the harness's report when every named test has the outcome that the dataset expects. */
function wholeReport(id: string, resolved: boolean): unknown {
  const { FAIL_TO_PASS, PASS_TO_PASS } = row(id);
  const none = { success: [], failure: [] };
  return {
    [id]: {
      patch_is_None: false,
      patch_exists: true,
      patch_successfully_applied: true,
      resolved,
      tests_status: {
        FAIL_TO_PASS: { ...none, [resolved ? 'success' : 'failure']: FAIL_TO_PASS },
        PASS_TO_PASS: { success: PASS_TO_PASS, failure: [] },
        FAIL_TO_FAIL: none,
        PASS_TO_FAIL: none,
      },
    },
  };
}

type Ids = readonly string[];
/** Returns the harness's run report for the three instances. */
function summary(ends: { resolved?: Ids; unresolved?: Ids; empty?: Ids; errors?: Ids }): unknown {
  const { resolved = [], unresolved = [], empty = [], errors = [] } = ends;
  const completed = [...resolved, ...unresolved];
  return {
    total_instances: 3,
    submitted_instances: 3,
    completed_instances: completed.length,
    resolved_instances: resolved.length,
    unresolved_instances: unresolved.length,
    empty_patch_instances: empty.length,
    error_instances: errors.length,
    completed_ids: completed.toSorted(),
    incomplete_ids: [],
    empty_patch_ids: empty,
    submitted_ids: IDS.toSorted(),
    resolved_ids: resolved.toSorted(),
    unresolved_ids: unresolved,
    error_ids: errors,
    schema_version: 2,
  };
}

test('gold leaves the files of the harness, and a second start runs nothing', async () => {
  const output = join(folder, 'gold.jsonl');
  const first = await evaluate('gold', 'gold', ['--output', output]);
  expect(first.code, first.stderr).toBe(0);
  expect(await json(join(folder, 'gold.gold.json'))).toEqual(summary({ resolved: IDS }));
  for (const id of IDS) {
    const names = await readdir(at('gold', 'gold', id));
    const written = words`eval.sh patch.diff report.json run_instance.log test_output.txt`;
    expect(names.sort()).toEqual(written);
    expect(await json(at('gold', 'gold', id, 'report.json'))).toEqual(wholeReport(id, true));
    expect(await text(at('gold', 'gold', id, 'patch.diff'))).toBe(row(id).patch);
    const script = await text(at('gold', 'gold', id, 'eval.sh'));
    expect(script.startsWith('#!/bin/bash\nset -uxo pipefail\n')).toBe(true);
    expect(script).toContain(`${row(id).test_patch}\nEOF_114329324912\n: '>>>>> Start Test Output'\n`);
    const log = await text(at('gold', 'gold', id, 'test_output.txt'));
    expect(log).toMatch(/>>>>> Start Test Output[\s\S]+passed[\s\S]+>>>>> End Test Output/);
    expect(await text(at('gold', 'gold', id, 'run_instance.log'))).toContain('INFO - >>>>> Applied Patch:');
  }
  const clean = { level: 'clean', reasons: [] };
  for (const { reward, report } of await readLines<Line>(output)) {
    expect({ reward, trust: report?.trust }).toEqual({ reward: 1, trust: clean });
  }
  const before = (await stat(at('gold', 'gold', PARSE, 'report.json'))).mtimeMs;
  const second = await evaluate('gold', 'gold');
  expect(second.code, second.stderr).toBe(0);
  expect(second.stderr).toContain('0 of 3 predictions to evaluate, 3 were evaluated earlier');
  expect((await stat(at('gold', 'gold', PARSE, 'report.json'))).mtimeMs).toBe(before);

  const regraded = await scene.swefarm`regrade ${output} --dataset ${dataset}`;
  expect(regraded.code, regraded.stderr).toBe(0);
  expect(regraded.stderr).toContain('3 read, 3 graded again, 0 changed');
  expect(await text(`${output}.regraded.jsonl`)).toBe(await text(output));
  const tree = await scene.swefarm`regrade ${join(logs(), 'gold')} --dataset ${dataset}`;
  expect(tree.stderr).toContain('3 read, 3 graded again, 0 changed');
  type Official = { instance_id: string; official: unknown };
  for (const line of await readLines<Official>(join(logs(), 'gold.regraded.jsonl'))) {
    expect(line.official).toEqual(wholeReport(line.instance_id, true));
  }
});

test('bad predictions are named by line, and the others are graded', async () => {
  const file = join(folder, 'mixed.jsonl');
  const harmless =
    'diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+x\n';
  const predictions = [
    prediction(PARSE, harmless),
    prediction(MARKUPSAFE, null),
    prediction(TOMLKIT, 'diff --git a/no b/no\n--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n'),
    prediction(PARSE, 'again'),
    prediction('no__such-1', ''),
    '{"instance_id":',
    '{"instance_id": "r1chardj0n3s__parse-1.20.2", "model_patch": ""}',
  ];
  await writeFile(file, predictions.join('\n'));
  const { code, stderr } = await evaluate('mixed', file);
  expect(code, stderr).toBe(10);
  expect(stderr).toContain('4 problems, the others are graded');
  for (const line of [4, 5, 6, 7]) expect(stderr).toContain(`line ${line}:`);
  for (const end of [/unresolved +1/, /empty_patch +1/, /patch_not_applied +1/]) expect(stderr).toMatch(end);
  expect(await json(join(folder, 'org__model.mixed.json'))).toEqual(
    summary({ unresolved: [PARSE], empty: [MARKUPSAFE], errors: [TOMLKIT] }),
  );
  expect(await json(at('mixed', 'org__model', PARSE, 'report.json'))).toEqual(wholeReport(PARSE, false));
  expect(await readdir(at('mixed', 'org__model', TOMLKIT))).toEqual(['patch.diff', 'run_instance.log']);
  expect(await text(at('mixed', 'org__model', TOMLKIT, 'run_instance.log'))).toContain(
    '>>>>> Patch Apply Failed',
  );
  expect(await readdir(join(logs(), 'mixed', 'org__model'))).not.toContain(MARKUPSAFE);
});

test('tests that exceed the time limit are errors without a report', async () => {
  const flags = words`--ids ${PARSE} --timeout 0.05 --reward-override timeout_unexplained=zero`;
  const { code, stderr } = await evaluate('late', 'gold', flags);
  expect(code, stderr).toBe(10);
  expect(stderr).toMatch(/tests_timed_out +1/);
  expect(await readdir(at('late', 'gold', PARSE))).not.toContain('report.json');
  const log = await text(at('late', 'gold', PARSE, 'test_output.txt'));
  expect(log.endsWith('\n\nTimeout error: 0.05 seconds exceeded.')).toBe(true);
  expect(await json(join(folder, 'gold.late.json'))).toMatchObject({
    total_instances: 1,
    error_ids: [PARSE],
  });
});

test('each evaluation is a run of its own, and differing verdicts are named', async () => {
  const { code, stderr } = await evaluate('thrice', 'gold', words`--ids ${PARSE} --n-times 3`);
  expect(code, stderr).toBe(0);
  expect(stderr).toContain('no test changed its outcome in 3 evaluations');
  for (const run of ['thrice', 'thrice-2', 'thrice-3']) {
    expect(await json(at(run, 'gold', PARSE, 'report.json'))).toEqual(wholeReport(PARSE, true));
    expect(await json(join(folder, `gold.${run}.json`))).toMatchObject({ resolved_ids: [PARSE] });
  }
  expect(await json(join(folder, 'gold.thrice.flaky.json'))).toMatchObject({ times: 3, flaky: [] });
});

test('an evaluation that infrastructure lost is repeated from the saved patch', async () => {
  const first = join(folder, 'first.jsonl');
  const made = await evaluate('first', 'gold', words`--ids ${PARSE} --output ${first}`);
  expect(made.code, made.stderr).toBe(0);
  const [good] = await readLines<Line>(first);
  const lost = {
    ...good,
    ...{ outcome: 'failed', resolved: null, reward: null, reward_row: 'failed', report: null, turns: 5 },
    failure: {
      ...{ stage: 'evaluation', class: 'evaluation_lost', attempts: 3 },
      message: 'the container vanished',
    },
    facts: { ...good?.facts, patch_origin: 'tree', evaluation: 'not_run', resolved: null },
  };
  const broken = await writeLines(join(folder, 'broken.jsonl'), [lost]);
  const mended = join(folder, 'mended.jsonl');
  const { code, stderr } = await scene.swefarm`eval --dataset ${dataset} --from ${broken} --run-id again
    --logs-dir ${logs()} --report-dir ${folder} --runtime docker --output ${mended}`;
  expect(code, stderr).toBe(0);
  expect(await readLines<Line>(mended)).toMatchObject([
    { rollout_id: good?.rollout_id, outcome: 'judged', resolved: true, reward: 1, failure: null, turns: 5 },
  ]);
  expect(await json(at('again', 'patch', PARSE, 'report.json'))).toEqual(wholeReport(PARSE, true));
});

test('invalid arguments are refused before any rollout starts', async () => {
  const bad = join(folder, 'all-bad.jsonl');
  await writeFile(bad, prediction('no__such-1', 'x'));
  const evaluation = words`eval --dataset ${dataset}`;
  const cases: [args: string[], output: string][] = [
    [evaluation, '--predictions'],
    [words`${evaluation} --predictions ${bad}`, 'no prediction is left'],
    [words`${evaluation} --predictions gold --run-id ../x`, '--run-id'],
    [words`${evaluation} --predictions gold --no-local-worker --run-id n`, '--redis-url'],
    [words`regrade ${join(folder, 'nowhere')}`, 'no such file'],
    [words`regrade ${folder}`, '--dataset'],
  ];
  for (const [args, output] of cases) {
    const { code, stderr } = await scene.swefarm`${args}`;
    expect(code, stderr).toBe(2);
    expect(stderr).toContain(output);
  }
});
