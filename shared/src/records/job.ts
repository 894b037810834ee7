/** What a submit writes: one run record, and per rollout a job of a few hundred bytes that refers to it. */
import { z } from 'zod';
import { MOST, tooMany } from './bounds.ts';
import { Needs } from './needs.ts';
import { AgentConfig, EvaluationConfig, PolicyConfig, RewardChoice, SandboxConfig } from './runconfig.ts';
import { setting } from './setting.ts';

/** Rollouts of one group. */
const group = z.number().int().max(MOST.group);

export const RunRecord = z
  .object({
    format: z.literal('swefarm-run-1'),
    /** What whoever works on it must know of. */
    needs: Needs,
    run_id: z.string(),
    /** ISO 8601, UTC. */
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
    /** Milliseconds since the epoch; null: when all is done. */
    deadline_at: setting(
      '--deadline <time>',
      'end the run after so long (30m, 2h, seconds) or at an ISO time, with the results that are there',
      z.number().int().min(-MOST.instantMs).max(MOST.instantMs).nullable().default(null),
      { form: 'time' },
    ),
    /** null: all are waited for. */
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
    /** null: no limit. */
    max_staleness: setting(
      '--max-staleness <n>',
      'cancel a rollout when the policy is more than so many versions ahead of it (default: no limit)',
      z.number().int().nonnegative().max(MOST.versions).nullable().default(null),
    ),
    /** null: never. */
    infra_pause_share: setting(
      '--infra-pause-share <share>',
      'pause the run when this share of its rollouts is lost to infrastructure',
      z.number().positive().max(1).nullable().default(0.5),
    ),
    /** Rollouts are appended while it lives, as calls come in; its groups are as large as the callers make them. */
    open: z.boolean().default(false),
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
      host: setting(
        '--allow-host-reward',
        'let results of the runtime host (a dry run) carry rewards',
        z.boolean().default(false),
      ),
    }),
    ttl: setting(
      '--ttl <seconds>',
      'how long Redis keeps results and artifacts of the run',
      z
        .number()
        .int()
        .positive()
        .max(MOST.ttlSeconds)
        .default(7 * 24 * 3600),
    ),
  })
  .superRefine((run, context) => {
    // One of them alone is refused by its own name.
    const alone = [run.group_size, run.oversample, run.refills].some((count) => count > MOST.group);
    const problem = alone ? null : tooMany(run, run.dataset.instances);
    if (problem) context.addIssue({ code: 'custom', path: ['group_size'], message: problem });
  });
export type RunRecord = z.infer<typeof RunRecord>;

/** Rollouts that each group starts with; refills come on top, one for each that failed. */
export const startedGroup = (run: Pick<RunRecord, 'group_size' | 'oversample'>): number =>
  run.group_size + run.oversample;

/** Rollouts that a submitted run starts with. */
export const startedRollouts = (run: Pick<RunRecord, 'group_size' | 'oversample' | 'dataset'>): number =>
  startedGroup(run) * run.dataset.instances;

/** The BullMQ payload. All else is in the run's records in Redis. */
export const RolloutJob = z.object({
  /** What whoever works on it must know of. */
  needs: Needs.optional(),
  rollout_id: z.string(),
  run_id: z.string(),
  instance_id: z.string(),
  rollout_index: z.number().int().nonnegative().max(MOST.opened),
  /** Patch for agent `patch`: the key of a blob among the run's records; absent otherwise. */
  patch_ref: z.string().optional(),
  /** For placement; absent where whoever made the job did not know it. */
  image: z.string().optional(),
  /** It failed once: whoever claims it next runs it, whatever its image. */
  anywhere: z.boolean().optional(),
  /** Claim of an attempt that had its time to come back for this job after an outage; it is waited for no more. */
  passed: z.string().optional(),
  /** Milliseconds since the epoch at submit, for the time spent in the queue. */
  submitted_at: z.number(),
});
export type RolloutJob = z.infer<typeof RolloutJob>;
