import { liveProgram } from '@swefarm/grading';
import { Instance, type WorkerRecord } from '@swefarm/shared';
import { bareInstance, toyCard } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { localAbility, workerWarnings } from './workerneeds.ts';

const plain = bareInstance();
const needing = Instance.parse({
  ...plain,
  family: 'swe-bench-live',
  needs: 3,
  plan: {
    grader: 'own-1',
    script: 'true',
    outcomes: liveProgram('def parser(log): pass'),
    verdict: { rule: 'live' },
  },
});
const other = Instance.parse({ ...needing, family: 'multi-swe' });
const farm = (...workers: Partial<WorkerRecord>[]) => ({
  registry: { list: async () => workers.map((worker) => ({ understands: 3, ...worker }) as WorkerRecord) },
});
const RUN = { needs: 1, agent: { card: null } };

test('instances that need parser_image are counted by family if no worker has one', async () => {
  const rows = [plain, needing, needing, other];
  const [warning, ...more] = await workerWarnings(rows, RUN, farm({ parser_image: false }, {}));
  expect(warning).toMatch(
    /^3 of 4 instances need parser_image \(swe-bench-live: 2, multi-swe: 1\), and none of the 2 workers names one/,
  );
  expect(more).toEqual([]);
  const [local] = await workerWarnings(rows, RUN, farm(), [localAbility(null)]);
  expect(local).toContain('none of the 1 worker names one');
});

test('instances of a level that workers lack are counted by family', async () => {
  const rows = [plain, needing];
  const has = { parser_image: true };
  expect(await workerWarnings(rows, RUN, farm({ ...has, understands: 2 }))).toEqual([
    '1 of 2 instances (swe-bench-live: 1) need workers of level 3, and none of the 1 worker has it: their rollouts wait for workers of a newer version',
  ]);
  expect(await workerWarnings(rows, RUN, farm(has, { understands: 2 }))).toEqual([
    '1 of 2 instances (swe-bench-live: 1) need workers of level 3, and 1 of the 2 workers have a lower one: these leave them to the others',
  ]);
  // The level of a run applies to all its instances.
  const [all] = await workerWarnings([plain, plain], { ...RUN, needs: 2 }, farm({ understands: 1 }));
  expect(all).toMatch(/^2 of 2 instances \(\S+: 2\) need workers of level 2/);
});

test('workers that lack the programs of the agent are counted', async () => {
  const lock = '0123456789abcdef'.repeat(4);
  const run = { needs: 1, agent: { card: toyCard([], { bundle: { name: 'toy', lock } }) } };
  const has = { bundles: ['codex aaaaaaaaaaaa', 'toy 0123456789ab'] };
  const lacks = { bundles: ['toy ffffffffffff'] };
  const warned = async (...workers: Partial<WorkerRecord>[]) =>
    (await workerWarnings([plain], run, farm(...workers))).join();
  expect(await warned(lacks, { bundles: [] })).toBe(
    'none of the 2 workers has the programs of agent toy 1.0: rollouts will fail (worker/no_agent); run swefarm agents install toy there, or name a shared folder by agents_dir',
  );
  expect(await warned(lacks, has)).toMatch(/^1 of the 2 workers lack the programs of agent toy 1\.0/);
  // An older worker does not tell which bundles it has.
  expect(await warned(has, {})).toBe('');
  const anyLock = { needs: 1, agent: { card: toyCard() } };
  expect(await workerWarnings([plain], anyLock, farm(lacks))).toEqual([]);
});

test('no warning if no instance needs it, a worker has it, or no worker is alive', async () => {
  expect(await workerWarnings([plain], RUN, farm({ understands: 1 }))).toEqual([]);
  expect(await workerWarnings([needing], RUN, farm({}, { parser_image: true }))).toEqual([]);
  const local = { ...localAbility('tools'), understands: 3 };
  expect(await workerWarnings([needing], RUN, farm(), [local])).toEqual([]);
  expect(await workerWarnings([needing], RUN, farm())).toEqual([]);
});
