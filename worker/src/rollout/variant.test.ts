import { AgentConfig } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { variantOf } from './variant.ts';

const tools = [{ name: 'submit', description: '', parameters: { type: 'object' }, run: 'submit' }];
const agent = AgentConfig.parse({
  action: 'tool',
  prompts: [
    { name: 'a', weight: 3 },
    { name: 'b', weight: 1, toolset: 'two' },
    { name: 'c', weight: 0 },
  ],
  toolset: [
    { name: 'one', tools },
    { name: 'two', tools, weight: 0 },
  ],
});
const chosen = (instance: object, run_id = 'r1') =>
  variantOf({ agent, run_id }, { instance_id: 'a__b-1', ...instance }).variant;

test('all rollouts of an instance in a run have the same sets; another run draws anew', () => {
  const variants = Array.from({ length: 40 }, (_, run) => chosen({}, `r${run}`)?.prompts);
  expect(new Set(variants)).toEqual(new Set(['a', 'b']));
  expect(chosen({})).toEqual(chosen({}));
});
test('a branch has the sets of the rollout that it continues', () => {
  const runs = Array.from({ length: 20 }, (_, run) => `r${run}`);
  const instance = { instance_id: 'a__b-1' };
  const branches = runs.map((run) =>
    variantOf({ agent, run_id: 'other', branch_of: { rollout_id: `${run}.a__b-1.3` } }, instance),
  );
  expect(branches.map(({ variant }) => variant)).toEqual(runs.map((run) => chosen({}, run)));
});
test('sets are drawn by their weights', () => {
  const drawn = Array.from({ length: 4_000 }, (_, at) => chosen({ instance_id: `i-${at}` })?.prompts);
  const share = drawn.filter((name) => name === 'a').length / drawn.length;
  expect(share).toBeGreaterThan(0.72);
  expect(share).toBeLessThan(0.78);
  expect(drawn).not.toContain('c');
});
test('a prompt set brings its toolset, and a row names both', () => {
  expect(chosen({ prompts: 'b' })).toMatchObject({ prompts: 'b', toolset: 'two' });
  expect(chosen({ prompts: 'c', toolset: 'two' })).toMatchObject({ prompts: 'c', toolset: 'two' });
  const { config } = variantOf({ agent, run_id: 'r' }, { instance_id: 'i', prompts: 'c' });
  expect(config).toMatchObject({ prompts: [{ name: 'c' }], toolset: [{ name: 'one' }] });
});
test('the hashes are those of the contents', () => {
  const [a, c] = [chosen({ prompts: 'a' }), chosen({ prompts: 'c' })];
  expect(a?.prompts_hash).toMatch(/^[0-9a-f]{64}$/);
  expect(a?.prompts_hash).toBe(c?.prompts_hash);
  expect(chosen({ prompts: 'b' })?.prompts_hash).not.toBe(a?.prompts_hash);
});
test('a run without sets has no variant, whatever a row names', () => {
  const plain = AgentConfig.parse({});
  expect(variantOf({ agent: plain, run_id: 'r' }, { instance_id: 'i' })).toEqual({
    config: plain,
    variant: null,
  });
});
test('a name that the run lacks is a fault of the instance', () => {
  expect(() => chosen({ toolset: 'three' })).toThrow(
    /toolset "three" of the row is not in the run, which has one, two/,
  );
});
test('rows that name nothing have the default, if only other rows name sets', () => {
  const named = AgentConfig.parse({
    action: 'tool',
    prompts: [{ name: 'a', weight: 0 }],
    toolset: [{ name: 'one', tools, weight: 0 }],
  });
  expect(variantOf({ agent: named, run_id: 'r' }, { instance_id: 'i' })).toMatchObject({
    config: { prompts: 'default', toolset: [] },
    variant: { prompts: 'default', prompts_hash: null, toolset: 'default', toolset_hash: null },
  });
});
