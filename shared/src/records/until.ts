/** Settings of a run that draws the instances of its groups until enough groups are selected (shared/src/redis/lua/group_end.lua). */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { setting } from './setting.ts';

const groups = z.number().int().positive().max(MOST.draws);
const share = z.number().min(0).max(1);

/** Parts of a dataset by pass rate. `all`: the run has no curriculum. `unknown`: too few rollouts. `hard`, `easy`: outside of the band. */
export const Stratum = z.enum(['all', 'band', 'unknown', 'hard', 'easy']);
export type Stratum = z.infer<typeof Stratum>;

/** Instances of a stratum, and their mean known pass rate (null: unknown), when the draws were planned. */
export const StratumSize = z.object({ instances: z.number().int().nonnegative(), rate: share.nullable() });

export const Curriculum = z.object({
  band: setting(
    '--curriculum <band>',
    'draw by pass rate of earlier runs: band=0.2:0.8 prefers instances within these rates',
    z
      .tuple([share, share])
      .refine(([low, high]) => low < high, { error: 'expected the lower rate first, such as 0.2:0.8' }),
    { form: 'band' },
  ),
  probe: setting(
    '--curriculum-probe <share>',
    'share of draws that go to instances below the band',
    share.default(0.05),
  ),
  recheck: setting(
    '--curriculum-recheck <share>',
    'share of draws that go to instances above the band; 0: they are retired for good',
    share.default(0.02),
  ),
  explore: setting(
    '--curriculum-explore <share>',
    'share of draws that go to instances with too few rollouts for a rate',
    share.default(0.2),
  ),
});
export type Curriculum = z.infer<typeof Curriculum>;

export const Until = z.object({
  groups: setting(
    '--until-groups <n>',
    'draw instances until so many groups are selected; groups that are not selected are replaced',
    groups,
  ),
  keep: setting(
    '--keep <which>',
    'groups that are selected: every group with enough usable rollouts, or only groups whose rewards differ',
    z.enum(['mixed', 'all']).default('mixed'),
  ),
  max: setting(
    '--max-groups <n>',
    'most groups that --until-groups draws (default: three for each wanted one)',
    groups.nullable().default(null),
  ),
  ahead: setting(
    '--draw-ahead <n>',
    'groups that run beyond the needed ones; surplus groups are cancelled, which prefers short ones',
    z.number().int().nonnegative().max(MOST.draws).default(0),
  ),
  seed: setting(
    '--draw-seed <n>',
    'seed of the draws (default: by the id of the run)',
    z.number().int().nullable().default(null),
  ),
  curriculum: Curriculum.nullable().default(null),
  /** Sizes of the strata when the draws were planned; empty before. */
  strata: z.partialRecord(Stratum, StratumSize).default({}),
});
export type Until = z.infer<typeof Until>;

/** A planned draw. `chance`: the probability of this instance at this draw, given the earlier draws. */
export const Draw = z.object({
  instance_id: z.string(),
  image: z.string(),
  /** Number of the group in the queue. */
  sequence: z.number().int(),
  stratum: Stratum,
  chance: z.number(),
});
export type Draw = z.infer<typeof Draw>;

type Drawn = { until: Pick<Until, 'groups' | 'max' | 'ahead'> | null };

/** Returns the maximum number of groups of a run over a dataset of `instances`. */
export const mostGroups = ({ until }: Drawn, instances: number): number =>
  until === null ? instances : Math.min(instances, until.max ?? 3 * until.groups + until.ahead);

/** Returns the number of groups with which a run starts. */
export const startedGroups = (run: Drawn, instances: number): number =>
  Math.min(mostGroups(run, instances), run.until === null ? instances : run.until.groups + run.until.ahead);

/** Returns why the draws of a run cannot succeed, and the field; null: they can. */
export function problemOfUntil(
  { until, group_size }: { until: Until | null; group_size: number },
  instances: number,
): { field: keyof Until; message: string } | null {
  if (until === null) return null;
  if (until.keep === 'mixed' && group_size < 2)
    return {
      field: 'keep',
      message: 'the rewards of 1 rollout never differ: expected a group_size above 1, or --keep all',
    };
  const most = mostGroups({ until }, instances);
  if (most >= until.groups) return null;
  return { field: 'groups', message: `expected at most ${most}, the number of groups that the run can draw` };
}
