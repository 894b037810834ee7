import { expect, test } from 'vitest';
import { aFailure, aLine, aReport, aResult } from '../../test/result.ts';
import { encodeLine, outputLine } from './line.ts';

test.each([
  [1, '1.0'],
  [0, '0.0'],
  [0.25, '0.25'],
  [null, 'null'],
])('a reward of %s is written as %s', (reward, text) => {
  const line = encodeLine(aLine({ reward }));
  expect(line).toContain(`"reward":${text},`);
  expect(JSON.parse(line).reward).toBe(reward);
});

test('a line has the sampling settings of its policy, if they are known', () => {
  const sampling = { temperature: 1, top_k: -1 };
  expect(outputLine(aResult(), { patch: null, report: null, sampling }).sampling).toEqual(sampling);
  expect(outputLine(aResult(), { patch: null, report: null, sampling: null })).not.toHaveProperty('sampling');
});

test('a line has the fields that readers need, and no line feeds', () => {
  const line = encodeLine(outputLine(aFailure(), { patch: 'a\nb\u2028', report: null }));
  expect(line).not.toContain('\n');
  expect(JSON.parse(line)).toMatchObject({
    run_id: 'r1',
    instance_id: 'a__b-1',
    rollout_id: 'r1.a__b-1.0',
    rollout_index: 0,
    outcome: 'failed',
    resolved: null,
    reward: null,
    turns: 0,
    exit_status: null,
    failure: { stage: 'policy', class: 'policy_unreachable', message: 'refused', attempts: 5 },
    patch: 'a\nb\u2028',
    artifact: null,
    seconds: { total: 10 },
    tokens: { prompt: 10, completion: 5 },
    policy_version: null,
    report: null,
  });
});

test('a report is summarised by counts', () => {
  const bucket = { success: ['a', 'b'], failure: ['c'] };
  const none = { success: [], failure: [] };
  const report = aReport({
    resolved: false,
    tests_status: { FAIL_TO_PASS: bucket, PASS_TO_PASS: none, FAIL_TO_FAIL: none, PASS_TO_FAIL: none },
  });
  expect(outputLine(aResult(), { patch: '', report }).report).toMatchObject({
    fail_to_pass: { success: 2, failure: 1 },
    pass_to_pass: { success: 0, failure: 0 },
    resolved: false,
  });
});
