import { bareRun } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { MOST, sizeOf } from './bounds.ts';
import { RolloutJob, RunRecord } from './job.ts';

const whole = bareRun();

const run = (change: object): { ok: boolean; output: string } => {
  const read = RunRecord.safeParse({ ...whole, ...change });
  return { ok: read.success, output: read.error?.issues.map(({ path }) => path.join('.')).join() ?? '' };
};

/** Returns the paths of all numbers in a record. */
function numbers(value: unknown, path: string[] = []): string[][] {
  if (typeof value === 'number') return [path];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => numbers(inner, [...path, key]));
}

const at = (path: readonly string[], value: unknown): object => {
  const copy = structuredClone(whole) as unknown as Record<string, unknown>;
  let parent = copy;
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string, unknown>;
  parent[path.at(-1) ?? ''] = value;
  return copy;
};

const EVERY = [
  ...numbers(whole),
  ...['deadline_at', 'min_group', 'max_staleness'].map((name) => [name]),
  ...[
    ['agent', 'context_limit'],
    ['sandbox', 'disk_bytes'],
  ],
];

test.each(EVERY.map((path) => [path.join('.'), path] as const))(
  'a run with a wrong number %s is refused by that name',
  (name, path) => {
    for (const odd of [1e300, -1e300, Number.NaN, Number.POSITIVE_INFINITY, '7', [7], true]) {
      const refused = run(at(path, odd));
      // `needs` may be any number, because it is read first.
      if (name === 'needs' && odd === 1e300) continue;
      expect(refused, String(odd)).toMatchObject({ ok: false, output: expect.stringContaining(name) });
    }
  },
);

test('the number of rollouts of a run is bounded', () => {
  const of = (instances: number) => ({ ...whole.dataset, instances });
  expect(run({ group_size: 200_000_000 })).toEqual({ ok: false, output: 'group_size' });
  expect(run({ oversample: 200_000_000 })).toEqual({ ok: false, output: 'oversample' });
  const each = { group_size: 400, oversample: 300, refills: 300 };
  expect(run({ ...each, dataset: of(MOST.rollouts / 1000) }).ok).toBe(true);
  expect(run({ ...each, dataset: of(MOST.rollouts / 1000 + 1) })).toEqual({
    ok: false,
    output: 'group_size',
  });
  expect(run({ group_size: MOST.group, dataset: of(MOST.instances) }).ok).toBe(false);
});

test('no time of a run exceeds a timer of Node', () => {
  expect(MOST.seconds * 1000).toBeLessThan(2 ** 31);
});

test('sizes of groups in Redis are counts within bounds', () => {
  expect(['0', '4', String(MOST.opened)].map(sizeOf)).toEqual([0, 4, MOST.opened]);
  for (const odd of ['200000000', '-1', '1.5', 'x', 'Infinity', null, undefined])
    expect(sizeOf(odd)).toBeNull();
  const job = { rollout_id: 'r.i.0', run_id: 'r', instance_id: 'i', submitted_at: 1 };
  expect(RolloutJob.safeParse({ ...job, rollout_index: 1e9 }).success).toBe(false);
});
