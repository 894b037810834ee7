/** The run record, and the small job of each rollout, which refers to the run record. */
import { z } from 'zod';
import { AgentConfig } from './agentconfig.ts';
import { MOST, tooMany } from './bounds.ts';
import { RunForecast } from './forecast.ts';
import { Needs } from './needs.ts';
import { RewardWeights } from './rewardparts.ts';
import { EvaluationConfig, PolicyConfig, RewardChoice, RolloutPolicy, SandboxConfig } from './runconfig.ts';
import { setting } from './setting.ts';
import { BranchPoint } from './trajectory.ts';
import { mostGroups, problemOfUntil, startedGroups, Until } from './until.ts';

const WEEK_SECONDS = 7 * 24 * 3600;
const group = z.number().int().max(MOST.group);

export const RunRecord = z
  .object({
    format: z.literal('swefarm-run-1'),
    needs: Needs,
    run_id: z.string(),
    /** Time of the submission, ISO 8601 in UTC. */
    created_at: z.string().refine((text) => !Number.isNaN(Date.parse(text)), { error: 'expected a time' }),
    kind: setting(
      '--kind <kind>',
      'class of priority: validation before training before collection',
      // Sessions have the priority of validation.
      z.enum(['validation', 'session', 'training', 'collection']).default('collection'),
      { choices: ['validation', 'training', 'collection'] },
    ),
    dataset: z.object({
      path: z.string(),
      sha256: z.string(),
      instances: z.number().int().nonnegative().max(MOST.instances),
    }),
    group_size: setting('--group-size <n>', 'rollouts per instance (default: 1)', group.positive()),
    order: setting(
      '--order <order>',
      'order in which groups start: longest expected duration first, by earlier runs on this farm, or as given',
      z.enum(['longest', 'given']).default('longest'),
    ),
    /** Forecast at the submission; absent in runs of earlier versions and in open runs. */
    forecast: RunForecast.optional(),
    /** Deadline of the run in milliseconds since the epoch; null: none. */
    deadline_at: setting(
      '--deadline <time>',
      'end the run after so long (30m, 2h, seconds) or at an ISO time, with the results that are there',
      z.number().int().min(-MOST.instantMs).max(MOST.instantMs).nullable().default(null),
      { form: 'time' },
    ),
    /** Number of usable results that ends a group; null: `group_size` with oversampling, otherwise the group runs all rollouts. */
    min_group: setting(
      '--min-group <n>',
      'usable results that are enough for a group: its other rollouts are then cancelled',
      group.positive().nullable().default(null),
    ),
    oversample: setting(
      '--oversample <n>',
      'rollouts that a group starts beyond --group-size; the first --group-size usable ones end it',
      group.nonnegative().default(0),
    ),
    refills: setting(
      '--refills <n>',
      'rollouts per group that are started in place of ones lost to infrastructure',
      group.nonnegative().default(0),
    ),
    /** Draws of instances until enough groups are kept; null: every instance is a group. */
    until: Until.nullable().default(null),
    /** Maximum number of versions that the policy may be ahead of a rollout; null: no limit. */
    max_staleness: setting(
      '--max-staleness <n>',
      'cancel a rollout when the policy is more than so many versions ahead of it (default: no limit)',
      z.number().int().nonnegative().max(MOST.versions).nullable().default(null),
    ),
    /** Share of rollouts failed by infrastructure at which the run pauses; null: the run never pauses by itself. */
    infra_pause_share: setting(
      '--infra-pause-share <share>',
      'pause the run when this share of its rollouts is lost to infrastructure',
      z.number().positive().max(1).nullable().default(0.5),
    ),
    /** Whether calls of the gateway append rollouts to the run and determine the sizes of its groups. */
    open: z.boolean().default(false),
    /** The rollout whose first turns all rollouts of this run continue; absent: they begin with the first turn. */
    branch_of: BranchPoint.optional(),
    /** Whether only the worker of a dry run may run the rollouts, which no model samples. */
    dry_run: z.literal(true).optional(),
    agent: AgentConfig,
    policy: PolicyConfig.nullable(),
    sandbox: SandboxConfig,
    evaluation: EvaluationConfig,
    reward: z.object({
      table: z.string(),
      hash: z.string(),
      overrides: setting(
        '--reward-override <row=choice>',
        'zero, grade or none for a row of the reward table',
        z.record(z.string(), RewardChoice).default({}),
      ),
      weights: setting(
        '--reward <weights>',
        'weights of the parts of the reward, such as resolved=1,f2p=0.5,length=soft:24k:32k:-1 (docs/rewards.md; default: 1 for resolved, else 0)',
        RewardWeights.nullable().default(null),
      ),
      host: setting(
        '--allow-host-reward',
        'let results of the runtime host (a dry run) carry rewards',
        z.boolean().default(false),
      ),
    }),
    ttl: setting(
      '--ttl <seconds>',
      'how long Redis stores results and artifacts of the run',
      z.number().int().positive().max(MOST.ttlSeconds).default(WEEK_SECONDS),
    ),
  })
  .superRefine((run, context) => {
    // If one of the numbers is above its own bound, the schema of the number reports the problem.
    const alone = [run.group_size, run.oversample, run.refills].some((count) => count > MOST.group);
    const problem = alone ? null : tooMany(run, mostGroups(run, run.dataset.instances));
    if (problem) context.addIssue({ code: 'custom', path: ['group_size'], message: problem });
    const draws = problemOfUntil(run, run.dataset.instances);
    if (draws) context.addIssue({ code: 'custom', path: ['until', draws.field], message: draws.message });
  });
export type RunRecord = z.infer<typeof RunRecord>;

/** Returns the number of rollouts with which each group starts, without refills. */
export const startedGroup = (run: Pick<RunRecord, 'group_size' | 'oversample'>): number =>
  run.group_size + run.oversample;

/** Returns the number of rollouts with which a submitted run starts. */
export const startedRollouts = (
  run: Pick<RunRecord, 'group_size' | 'oversample' | 'dataset' | 'until'>,
): number => startedGroup(run) * startedGroups(run, run.dataset.instances);

/** The payload of a job in BullMQ. */
export const RolloutJob = z.object({
  needs: Needs.optional(),
  rollout_id: z.string(),
  run_id: z.string(),
  instance_id: z.string(),
  rollout_index: z.number().int().nonnegative().max(MOST.opened),
  /** Reference to the patch of the agent `patch`, or to the recorded turns that a branch continues. */
  patch_ref: z.string().optional(),
  /** What the rollout changes in the policy of the run; absent: nothing. */
  policy: RolloutPolicy.optional(),
  /** Image of the instance, by which a worker is selected; absent if unknown. */
  image: z.string().optional(),
  /** Whether any worker may run the rollout, whatever its image: an earlier attempt failed. */
  anywhere: z.boolean().optional(),
  /** Claim of an earlier attempt. Workers no longer wait for the worker of this attempt to return after an outage. */
  passed: z.string().optional(),
  /** Time of submission in milliseconds since the epoch. */
  submitted_at: z.number(),
});
export type RolloutJob = z.infer<typeof RolloutJob>;
