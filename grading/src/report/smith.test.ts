import { existsSync, readFileSync } from 'node:fs';
import { Instance, InstancePlan } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { ran } from '../instance.fixture.ts';
import { smithScript } from '../plan/smith/command.ts';
import { smithProject } from '../plan/smith/projects.ts';
import { gradeEvaluation } from './grade.ts';
import { officialReport } from './official.ts';

/** Test logs, and the report.json that SWE-smith's own code makes from each. Only some machines have this file beside the repository. */
const CORPUS = new URL('../../../../shared/grading/families/swe-smith.jsonl', import.meta.url);
type Case = {
  case: string;
  parser: string;
  log: string;
  rows: {
    instance_id: string;
    repo: string;
    FAIL_TO_PASS: string[];
    PASS_TO_PASS: string[];
    model_patch: string | null;
  };
  expected: Record<string, unknown>;
};

const here = existsSync(CORPUS);
const cases = (here ? readFileSync(CORPUS, 'utf8').trim().split('\n') : [])
  .map((line): Case => JSON.parse(line))
  .filter(({ parser }) => parser === 'verdict');

describe('the reports of SWE-smith itself', () => {
  test('are beside the repository', ({ skip }) => {
    skip(!here, '../shared/grading/families is not beside the repository');
    expect(cases.length).toBeGreaterThan(0);
  });

  test.each(cases)('$case', ({ log, rows, expected }) => {
    const { instance_id, repo, FAIL_TO_PASS, PASS_TO_PASS, model_patch } = rows;
    const project = smithProject(repo.replace('swesmith/', ''));
    if (!project) throw new Error(repo);
    const plan = InstancePlan.parse({
      grader: 'swesmith-9b74ac0',
      script: smithScript(project.testCommand, '/testbed'),
      timeout: project.timeoutSeconds,
      outcomes: { from: 'log', dialect: 'swesmith', parser: project.parser },
      verdict: { rule: 'swebench' },
    });
    const instance = Instance.parse({
      instance_id,
      repo,
      base_commit: project.commit,
      problem_statement: '',
      FAIL_TO_PASS,
      PASS_TO_PASS,
      family: 'swesmith',
      image: project.image,
      plan,
    });
    const state = model_patch === null ? 'none' : model_patch === '' ? 'empty' : 'applied';
    const report = gradeEvaluation(instance, plan, ran(log, { patch_state: state }), model_patch);
    const official = officialReport(report, { log, model: 'm', timeoutSeconds: 90 });
    if ('error' in expected) {
      expect(report).toMatchObject({ unreadable: 'raises', resolved: false });
      expect(official).toBeNull();
    } else expect(official).toEqual({ ...expected, model_name_or_path: 'm' });
  });
});
