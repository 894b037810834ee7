/** Tests the texts of a task's files that depend on settings of the instance. */
import { execFileSync } from 'node:child_process';
import { Instance, InstancePlan } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { taskFiles } from './task.ts';

function filesOf({ environment = {}, plan = {} }: { environment?: object; plan?: object }) {
  const instance = Instance.parse({
    ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'f00', problem_statement: '', image: 'i' },
    ...{ family: 'custom', FAIL_TO_PASS: [], PASS_TO_PASS: [], environment },
  });
  const verdict = { outcomes: { from: 'exit_code' }, verdict: { rule: 'exit_code' } };
  const own = InstancePlan.parse({ grader: 'x', script: 'true', ...verdict, ...plan });
  return taskFiles(instance, own, { network: 'none', agentSeconds: 9, testSeconds: 100 });
}

test('commands of an agent run if the activation ends in a comment', () => {
  const { 'environment/activate.sh': script = '' } = filesOf({
    environment: { activate: 'export X=1 # env' },
  });
  expect(execFileSync('bash', ['-c', `${script}echo "<$X>"`], { encoding: 'utf8' })).toBe('<1>\n');
});

test.each([
  [undefined, 100],
  [50, 50],
  [500, 100],
])('a limit of %s s in the plan and of 100 s in the run gives %i s', (timeout, limit) => {
  expect(filesOf({ plan: { timeout } })['tests/plan.sh']).toContain(`\nlimit=${limit}\n`);
});

test('a Dockerfile does not expand variables in the name of the work tree', () => {
  expect(filesOf({ environment: { workdir: '/a$HOME' } })['tests/Dockerfile']).toContain(
    '\nWORKDIR /a\\$HOME\n',
  );
});

test('a hidden path in the tree becomes a pattern that matches only this path', () => {
  const files = filesOf({ environment: { workdir: '/t', hidden: ['/t/[a]*.py', '/elsewhere'] } });
  expect(files['environment/prepare/exclude']).toMatch(/\n\/\\\[a\\\]\\\*\.py\n$/);
});
