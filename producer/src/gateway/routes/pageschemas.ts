/** Requests and answers of `/v1/page`, as `producer/src/page/data.ts` has their types. */
import { JournalEntry, LiveRollout, LiveTurn, Report, Result, WorkerRecord } from '@swefarm/shared';
import { z } from 'zod';
import { PageTurnBody, TrajectoryBody } from './artifactschemas.ts';

export const PageRunParams = z.object({ run: z.string() });
export const PageRolloutParams = z.object({ rollout: z.string() });
export const PageTurnParams = PageRolloutParams.extend({ turn: z.coerce.number().int().nonnegative() });
export const PageQuery = z.object({
  after: z
    .string()
    .regex(/^(\d+(-\d+)?|end)$/)
    .default('0')
    .meta({ description: 'cursor of the answer before; 0: from the start' }),
});

const Count = z.number().int();

const RunStatusBody = z.object({
  run_id: z.string(),
  created_at: z.string(),
  kind: z.string(),
  agent: z.string(),
  model: z.string().nullable(),
  instances: Count,
  group_size: Count,
  rollouts: Count,
  committed: Count,
  judged: Count,
  resolved: Count,
  failed: Count,
  cancelled: Count,
  turns_mean: z.number().nullable(),
  reward_mean: z.number().nullable(),
  failures: z.record(z.string(), Count),
  paused: z.string().nullable(),
});

export const AccessBody = z.object({
  granted: z.boolean().meta({ description: 'whether this request may ask the other routes of the page' }),
});

export const OverviewBody = z.object({
  kind: z.enum(['farm', 'file']),
  name: z.string(),
  runs: z.array(RunStatusBody),
  queue: z.record(z.string(), Count).nullable(),
  workers: z.array(WorkerRecord),
});

const PageRolloutBody = z.object({
  instance: Count,
  index: Count,
  outcome: Result.shape.outcome,
  resolved: z.boolean().nullable(),
  reward: z.number().nullable(),
  exit: Result.shape.exit_status,
  failure: z.string().nullable(),
  reason: z.string().nullable(),
  forged: z.boolean(),
  turns: Count,
  tokens: Count,
  seconds: z.number(),
  attempt: Count,
  node: z.string(),
  version: z.string().nullable(),
  finished_at: z.number(),
});

export const PageRunBody = z.object({
  run: RunStatusBody,
  instances: z.array(z.string()),
  rollouts: z.array(PageRolloutBody),
  running: z.array(LiveRollout),
  cursor: z.string(),
});

/** What a result and a line of an output file have in common, and whatever else they carry. */
const ResultOrLine = Result.omit({
  format: true,
  claim: true,
  software_version: true,
  unread_calls: true,
}).loose();

export const PageDetailBody = z.object({
  rollout_id: z.string(),
  instance_id: z.string(),
  result: ResultOrLine.nullable(),
  live: LiveRollout.nullable(),
  siblings: z.array(Count),
  attempts: z.array(JournalEntry),
  problem: z.string().nullable(),
  gold: z.string().nullable(),
  trajectory: TrajectoryBody.extend({ turns: z.array(PageTurnBody) }).nullable(),
  patch: z.string().nullable(),
  report: Report.nullable(),
  failure_detail: z.string().nullable(),
  log_size: Count.nullable(),
  missing: z.string().nullable(),
});

export const PageTokensBody = z.object({
  tokens: z
    .object({
      prefix_length: Count,
      prompt: z.array(Count),
      generation: z.array(Count),
      log_probs: z.array(z.number()),
    })
    .nullable(),
});

export const PageLogBody = z.object({ log: z.string().nullable() });

export const PageLiveBody = z.object({
  turns: z.array(LiveTurn),
  cursor: z.string(),
  live: LiveRollout.nullable(),
  finished: z.boolean(),
});
