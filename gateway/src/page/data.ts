/** Data of the page, from a farm or from a result file. The browser code of the page imports only the types. */
import {
  type ArtifactContent,
  JournalEntry,
  LiveRollout,
  LiveTurn,
  Report,
  Result,
  WorkerRecord,
} from '@swefarm/shared';
import { z } from 'zod';
import { PageLineBody, PageTurnBody, TrajectoryBody } from './artifactschemas.ts';

const Count = z.number().int();

/** Groups of a run that draws them: those that it is to have, has, has opened and may open, and those that it does not count. */
export const RunDraws = z.object({
  wanted: Count,
  selected: Count,
  drawn: Count,
  most: Count,
  dropped: z.record(z.string(), Count),
});

export const RunStatus = z.object({
  run_id: z.string(),
  created_at: z.string(),
  kind: z.string(),
  dry_run: z.literal(true).optional().meta({ description: 'no model sampled the rollouts' }),
  agent: z.string(),
  model: z.string().nullable(),
  instances: Count,
  group_size: Count,
  rollouts: Count,
  committed: Count,
  judged: Count,
  resolved: Count,
  scored: Count.meta({ description: 'judged by a number alone' }),
  failed: Count,
  cancelled: Count,
  turns_mean: z.number().nullable(),
  reward_mean: z.number().nullable(),
  failures: z.record(z.string(), Count),
  paused: z.string().nullable().meta({ description: 'reason of a pause' }),
  draws: RunDraws.nullable().meta({
    description: 'of a run with `until`; null: another run, or one in a file',
  }),
});
export type RunStatus = z.infer<typeof RunStatus>;

export const PageOverview = z.object({
  kind: z.enum(['farm', 'file']),
  name: z.string().meta({ description: 'address of the Redis, or path of the file' }),
  runs: z.array(RunStatus),
  queue: z.record(z.string(), Count).nullable().meta({ description: 'jobs by state; null of a file' }),
  workers: z.array(WorkerRecord),
});
export type PageOverview = z.infer<typeof PageOverview>;

/** A rollout in lists and grids. The record is small, because one answer contains thousands of rollouts. */
export const PageRollout = z.object({
  instance: Count.meta({ description: "position in the run's instances" }),
  index: Count,
  outcome: Result.shape.outcome,
  resolved: z.boolean().nullable(),
  reward: z.number().nullable(),
  reward_parts: Result.shape.reward_parts.meta({ description: 'only of runs with weights' }),
  exit: Result.shape.exit_status,
  failure: z.string().nullable().meta({ description: 'class of the failure' }),
  reason: z.string().nullable().meta({ description: 'its message, cut' }),
  forged: z.boolean(),
  turns: Count,
  tokens: Count,
  seconds: z.number(),
  attempt: Count,
  node: z.string(),
  version: z.string().nullable(),
  finished_at: z.number(),
});
export type PageRollout = z.infer<typeof PageRollout>;

export const PageRun = z.object({
  run: RunStatus,
  instances: z.array(z.string()).meta({ description: 'ids, in the order in which they are shown' }),
  rollouts: z.array(PageRollout).meta({ description: 'those that were committed since `after`' }),
  running: z.array(LiveRollout),
  cursor: z.string().meta({ description: 'the next `after`' }),
});
export type PageRun = z.infer<typeof PageRun>;

const BranchOf = z.object({
  rollout_id: z.string(),
  turn: Count.meta({ description: 'the last shared turn, from 1' }),
});

export const PageBranches = z.object({
  of: BranchOf.nullable().meta({ description: 'the rollout and turn that this run continues' }),
  branches: z
    .array(
      BranchOf.extend({
        run_id: z.string(),
        instance_id: z.string(),
        group_size: Count,
        rollouts: z.array(PageRollout).meta({ description: 'ended rollouts' }),
      }),
    )
    .meta({ description: 'runs that continue a rollout; each stands after the run of that rollout' }),
});
export type PageBranches = z.infer<typeof PageBranches>;

const Rate = z.number().nullable().meta({ description: 'null without rollouts' });

const TrendPoint = z.object({
  version: z.string().nullable().meta({ description: 'of the policy; empty: unknown' }),
  until: z.string().nullable().meta({ description: 'the last version of a point for several' }),
  from: z.number().meta({ description: 'when its first rollout ended, in milliseconds' }),
  to: z.number().meta({ description: 'when its last rollout ended' }),
  rollouts: Count,
  judged: Count,
  resolve_rate: Rate,
  reward_mean: Rate,
  turns_mean: Rate,
  tokens_mean: Rate,
  failure_rate: Rate.meta({ description: 'of all rollouts but cancelled ones' }),
});

export const MOST_TREND_RUNS = 50;

export const PageTrends = z.object({
  runs: z
    .array(z.object({ run_id: z.string(), created_at: z.string(), model: z.string().nullable() }))
    .meta({ description: 'runs to choose from, newest first' }),
  series: z
    .array(
      z.object({
        run_id: z.string().nullable().meta({ description: 'null: all chosen runs together' }),
        all: TrendPoint,
        versions: z.array(TrendPoint).meta({ description: 'in the order of their first results' }),
        times: z.array(TrendPoint),
      }),
    )
    .meta({ description: 'a bounded number of points each' }),
});
export type PageTrends = z.infer<typeof PageTrends>;

export type PageTurn = z.infer<typeof PageTurnBody>;
const PageTrajectory = TrajectoryBody.extend({
  turns: z.array(PageTurnBody),
  lines: z.array(PageLineBody).optional(),
});
export type PageLine = z.infer<typeof PageLineBody>;
export type PageTrajectory = z.infer<typeof PageTrajectory>;

/** Fields that a result and a line of an output file have in common. Other fields are allowed. */
const ResultOrLine = Result.omit({
  format: true,
  claim: true,
  software_version: true,
  unread_calls: true,
}).loose();

export const PageDetail = z.object({
  rollout_id: z.string(),
  instance_id: z.string(),
  result: ResultOrLine.nullable().meta({ description: 'null while it waits or runs' }),
  live: LiveRollout.nullable().meta({ description: 'its state while it runs' }),
  siblings: z.array(Count).meta({ description: 'indices of the group' }),
  attempts: z.array(JournalEntry),
  problem: z.string().nullable(),
  gold: z.string().nullable().meta({ description: 'the golden patch; null without the dataset' }),
  trajectory: PageTrajectory.nullable(),
  patch: z.string().nullable(),
  report: Report.nullable(),
  failure_detail: z.string().nullable(),
  outputs: z
    .array(z.object({ name: z.string(), stored: Count, bytes: Count }))
    .meta({ description: 'what the agent printed and wrote: bytes that are stored, and bytes of the file' }),
  log_size: Count.nullable().meta({ description: 'bytes of the test log, which has a route of its own' }),
  missing: z.string().nullable().meta({ description: 'why there is a result but no trajectory' }),
});
export type PageDetail = z.infer<typeof PageDetail>;

export const PageTokens = z.object({
  prefix_length: Count,
  prompt: z.array(Count),
  generation: z.array(Count),
  log_probs: z.array(z.number()),
});
export type PageTokens = z.infer<typeof PageTokens>;

export const PageOutput = z.object({
  output: z.object({ text: z.string().nullable(), base64: z.string().nullable() }).nullable(),
});
export type PageOutput = z.infer<typeof PageOutput>;

export const PageLive = z.object({
  turns: z.array(LiveTurn),
  cursor: z.string(),
  live: LiveRollout.nullable(),
  finished: z.boolean(),
});
export type PageLive = z.infer<typeof PageLive>;

/** Methods throw UsageError and SwefarmError for unknown runs and rollouts. */
export interface PageSource {
  overview(): Promise<PageOverview>;
  run(runId: string, after: string): Promise<PageRun>;
  /** Returns the branches below a run or a rollout. */
  branches(id: string): Promise<PageBranches>;
  /** Returns the trends of these runs (null: the newest runs): with `each` one series for each run, otherwise one series for all. */
  trends(runIds: readonly string[] | null, each: boolean): Promise<PageTrends>;
  rollout(rolloutId: string): Promise<PageDetail>;
  artifact(rolloutId: string): Promise<ArtifactContent | null>;
  live(rolloutId: string, after: string): Promise<PageLive>;
}
