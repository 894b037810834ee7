import { HarborTask } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { taskOf } from '../../test/matrix/harbortasks.ts';
import { conditionsOf } from './control.ts';

test('variables of a Harbor task change the conditions of control runs', () => {
  const given = (more: Partial<HarborTask>) => {
    const harbor = HarborTask.parse(taskOf(undefined, more).harbor);
    const instance = { instance_id: 'answer', patch: 'true', harbor };
    const plan = {} as Parameters<typeof conditionsOf>[0]['plan'];
    const rest = { imageDigest: '', network: 'none', timeoutSeconds: 1, limits: {}, env: {} };
    return conditionsOf({ instance, plan, ...rest });
  };
  const verifier = { timeout: 20, env: { A: '1' } };
  const all = [{}, { solution_env: { A: '1' } }, { solution_env: { A: '2' } }, { verifier }].map(given);
  expect(new Set(all).size).toBe(4);
  expect(given({})).toBe(all[0]);
});
