import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Report } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { aFailure, aReport, aResult } from '../../../test/result.ts';
import { evaluationStatusOf } from './evaluationstatus.ts';
import { blankFiles, filesOf } from './files.ts';
import { writeRunReport } from './runreport.ts';
import { instanceFolder, pythonJson, readReport, roundName, writeFolder } from './tree.ts';

let logs = '';
beforeEach(async () => {
  logs = temporaryFolder('tree');
});

const REPORT = aReport();
const PLAN = {
  apply: ['git apply --verbose', 'git apply --verbose --reject', 'patch'].map((name) => ({ name, argv: [] })),
};
const prediction = { instance_id: 'a__b-1', model_name_or_path: 'org/model', model_patch: 'the patch' };
const prepare = () => instanceFolder(logs, 'run', prediction, 'swebench-4.1.0');

async function written(over: Partial<Report>, result = aResult()): Promise<Record<string, string>> {
  const report = { ...REPORT, ...over };
  const content = { report, test_log: 'the log\n', eval_script: '#!/bin/bash\n' };
  const folder = prepare();
  await writeFolder(
    folder,
    filesOf({ result, content, prediction, folder, plan: PLAN, timeoutSeconds: 1800 }),
  );
  const names = (await readdir(folder)).sort();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')])),
  );
}

test('an evaluation leaves the five files of the harness', async () => {
  const files = await written({}, aResult({ finished_at: Date.UTC(2026, 0, 2, 3, 4, 15, 678) }));
  expect(prepare()).toBe(join(logs, 'run', 'org__model', 'a__b-1'));
  const at = (text: string) => text.replaceAll(logs, 'LOGS');
  expect(at(files['run_instance.log'] ?? '')).toMatchInlineSnapshot(`
    "2026-01-02 03:04:05,678 - INFO - Creating container for a__b-1...
    2026-01-02 03:04:05,678 - INFO - Container for a__b-1 is made by docker on n1
    2026-01-02 03:04:05,678 - INFO - Intermediate patch for a__b-1 written to LOGS/run/org__model/a__b-1/patch.diff, now applying to container...
    2026-01-02 03:04:05,678 - INFO - Failed to apply patch to container: git apply --verbose
    2026-01-02 03:04:05,678 - INFO - >>>>> Applied Patch:
    git apply --verbose --reject
    2026-01-02 03:04:15,678 - INFO - Eval script for a__b-1 written to LOGS/run/org__model/a__b-1/eval.sh; copying to container...
    2026-01-02 03:04:15,678 - INFO - Test runtime: 4.00 seconds
    2026-01-02 03:04:15,678 - INFO - Test output for a__b-1 written to LOGS/run/org__model/a__b-1/test_output.txt
    2026-01-02 03:04:15,678 - INFO - Grading answer for a__b-1...
    2026-01-02 03:04:15,678 - INFO - report: {"a__b-1":{"patch_is_None":false,"patch_exists":true,"patch_successfully_applied":true,"resolved":true,"tests_status":{"FAIL_TO_PASS":{"success":["test_ü"],"failure":[]},"PASS_TO_PASS":{"success":[],"failure":[]},"FAIL_TO_FAIL":{"success":[],"failure":[]},"PASS_TO_FAIL":{"success":[],"failure":[]}}}}
    Result for a__b-1: resolved: True
    "
  `);
  delete files['run_instance.log'];
  expect(files).toMatchInlineSnapshot(`
    {
      "eval.sh": "#!/bin/bash
    ",
      "patch.diff": "the patch",
      "report.json": "{
        "a__b-1": {
            "patch_is_None": false,
            "patch_exists": true,
            "patch_successfully_applied": true,
            "resolved": true,
            "tests_status": {
                "FAIL_TO_PASS": {
                    "success": [
                        "test_\\u00fc"
                    ],
                    "failure": []
                },
                "PASS_TO_PASS": {
                    "success": [],
                    "failure": []
                },
                "FAIL_TO_FAIL": {
                    "success": [],
                    "failure": []
                },
                "PASS_TO_FAIL": {
                    "success": [],
                    "failure": []
                }
            }
        }
    }",
      "test_output.txt": "the log
    ",
    }
  `);
});

test.each<[string, Partial<Report>, string[], string]>([
  [
    'a patch that does not apply',
    {
      patch_state: 'not_applied',
      evaluation: 'not_run',
      resolved: false,
      tests_status: null,
      applied_with: null,
    },
    ['patch.diff', 'run_instance.log'],
    'patch_not_applied',
  ],
  [
    'tests that time out',
    { evaluation: 'timed_out', resolved: false, tests_status: null },
    ['eval.sh', 'patch.diff', 'run_instance.log', 'test_output.txt'],
    'tests_timed_out',
  ],
  [
    'tests that cannot start',
    { evaluation: 'tests_cannot_start', resolved: false, tests_status: null },
    ['eval.sh', 'patch.diff', 'report.json', 'run_instance.log', 'test_output.txt'],
    'tests_cannot_start',
  ],
  [
    'a log on which the harness breaks',
    { unreadable: 'raises', resolved: false, tests_status: null },
    ['eval.sh', 'patch.diff', 'run_instance.log', 'test_output.txt'],
    'log_unreadable',
  ],
  [
    'a container killed by its own limit',
    { evaluation: 'sandbox_killed', resolved: false, tests_status: null },
    ['eval.sh', 'patch.diff', 'report.json', 'run_instance.log', 'test_output.txt'],
    'killed_by_own_limit',
  ],
])('%s', async (_name, over, names, end) => {
  const files = await written(over);
  expect(Object.keys(files)).toEqual(names);
  expect(evaluationStatusOf(aResult(), { ...REPORT, ...over })).toBe(end);
  if (over.evaluation === 'timed_out') {
    expect(files['test_output.txt']).toBe('the log\n\n\nTimeout error: 1800 seconds exceeded.');
  }
  if (over.patch_state === 'not_applied') {
    expect(files['run_instance.log']).toContain('>>>>> Patch Apply Failed:\nthe log');
  }
});

test.each([
  ['node_disk', 'node_out_of_disk'],
  ['node_memory', 'node_out_of_memory'],
  ['engine_unreachable', 'engine_gone'],
  ['image_not_found', 'image_unavailable'],
  ['evaluation_lost', 'container_lost'],
  ['bug', 'worker/bug'],
] as const)('infrastructure that fails by %s ends as %s, with its words in the log', (cause, end) => {
  const result = aFailure({ failure: { stage: 'worker', class: cause, message: 'because', attempts: 3 } });
  expect(evaluationStatusOf(result, null)).toBe(end);
  const files = filesOf({ result, content: null, prediction, folder: 'f', plan: null, timeoutSeconds: 1 });
  expect(files).toMatchObject({ report: null, testOutput: null, script: null, patch: 'the patch' });
  expect(files.log).toContain(
    `ERROR - Error in evaluating model for a__b-1: worker/${cause} after 3 attempts: because`,
  );
});

test('files of an earlier try that this try does not write are removed', async () => {
  await written({});
  const files = await written({ patch_state: 'not_applied', evaluation: 'not_run', tests_status: null });
  expect(Object.keys(files)).toEqual(['patch.diff', 'run_instance.log']);
  expect(await readReport(prepare(), 'a__b-1')).toEqual({ state: 'absent' });
});

test('a blank patch counts as not applied', () => {
  expect(blankFiles({ ...prediction, model_patch: '\n' }, PLAN)).toMatchObject({ patch: '\n', report: null });
});

test('the run report is made from the files of the tree', async () => {
  await written({});
  const path = await writeRunReport({
    logs,
    reportDir: join(logs, 'reports'),
    run: 'run',
    instanceIds: ['a__b-1', 'empty-1', 'error-1', 'missing-1'],
    predictions: [
      prediction,
      { ...prediction, instance_id: 'empty-1', model_patch: null },
      { ...prediction, instance_id: 'error-1' },
      { ...prediction, instance_id: 'elsewhere-1' },
    ],
    grader: 'swebench-4.1.0',
  });
  expect(path).toBe(join(logs, 'reports', 'org__model.run.json'));
  const text = await readFile(path, 'utf8');
  expect(text.endsWith('}\n')).toBe(true);
  expect(JSON.parse(text)).toEqual({
    total_instances: 4,
    submitted_instances: 4,
    completed_instances: 1,
    resolved_instances: 1,
    unresolved_instances: 0,
    empty_patch_instances: 1,
    error_instances: 1,
    completed_ids: ['a__b-1'],
    incomplete_ids: ['missing-1'],
    empty_patch_ids: ['empty-1'],
    submitted_ids: ['a__b-1', 'elsewhere-1', 'empty-1', 'error-1'],
    resolved_ids: ['a__b-1'],
    unresolved_ids: [],
    error_ids: ['error-1'],
    schema_version: 2,
  });
});

test('rows of SWE-smith leave its run-level report beside the instances', async () => {
  const predictions = [prediction, { ...prediction, instance_id: 'error-1' }];
  const instanceIds = ['a__b-1', 'error-1', 'missing-1'];
  const reportDir = join(logs, 'reports');
  const grader = 'swesmith-9b74ac0';
  const own = instanceFolder(logs, 'run', prediction, grader);
  expect(own).toBe(join(logs, 'run', 'a__b-1'));
  await writeFolder(own, { patch: '', log: '', script: null, testOutput: null, report: { resolved: true } });
  await writeRunReport({ logs, reportDir, run: 'run', instanceIds, predictions, grader });
  const text = await readFile(join(logs, 'run', 'report.json'), 'utf8');
  expect(JSON.parse(text)).toEqual({
    resolved: 1,
    unresolved: 1,
    total: 2,
    ids_resolved: ['a__b-1'],
    ids_unresolved: ['error-1'],
  });
});

test('JSON is written as Python writes it', () => {
  expect(pythonJson({ a: [], 'ü\u007f\u2028😀': ['\n"'], b: {} })).toBe(
    '{\n    "a": [],\n    "\\u00fc\\u007f\\u2028\\ud83d\\ude00": [\n        "\\n\\""\n    ],\n    "b": {}\n}',
  );
});

test('each round is a separate run', () => {
  expect([0, 1, 2].map((round) => roundName('r', round))).toEqual(['r', 'r-2', 'r-3']);
});
