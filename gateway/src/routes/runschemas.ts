/** Requests and answers of `/v1/runs` and `/v1/rollouts`. */
import {
  GroupCount,
  JournalEntry,
  Result,
  RunCounts,
  RunRecord,
  UnreadableResult,
  UnreadableRun,
} from '@swefarm/shared';
import { z } from 'zod';

export const RunSubmission = z.strictObject({
  instances: z
    .array(z.union([z.string(), z.looseObject({})], 'expected a row, or an id of the dataset of serve'))
    .min(1)
    .meta({ description: 'rows as in a dataset file, or ids of the dataset that serve was started with' }),
  group_size: z.number().int().positive().default(1),
  run: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ description: "keys of a run's record, as in a --run-config file" }),
});

export const RunParams = z.object({ run: z.string().regex(/^[a-z0-9]+$/, 'expected a run id') });
export const RolloutParams = z.object({ rollout: z.string() });

export const ResultsQuery = z.object({
  after: z
    .string()
    .regex(/^\d+(-\d+)?$/, 'expected the last_id of an earlier answer')
    .default('0')
    .meta({ description: 'last_id of the previous answer; 0: from the start' }),
  wait_seconds: z.coerce.number().min(0).max(3600).default(0),
  count: z.coerce.number().int().min(1).max(1000).default(200),
});

export const RunCancellation = z
  .strictObject({ rollouts: z.array(z.string()).min(1).optional() })
  .nullish()
  .meta({ description: 'rollouts to cancel; default: all of the run' });

export const SubmittedRun = z.object({
  run_id: z.string(),
  rollouts: z.number().int(),
  queued: z.number().int().meta({ description: 'rollouts that this request queued' }),
});

const { created_at, kind, open, group_size, dataset } = RunRecord.shape;
const RunSummary = z.object({ run_id: z.string(), created_at, kind, open, group_size, dataset });

export const RunList = z.object({
  runs: z.array(RunSummary),
  unreadable: z.array(UnreadableRun).meta({ description: 'runs with unreadable records' }),
});

export const RunDetail = RunSummary.extend({
  left: z.number().int().meta({ description: 'uncommitted rollouts' }),
  counts: RunCounts,
  groups: z.record(z.string(), GroupCount).meta({ description: 'by instance id' }),
});

export const ResultList = z.object({
  results: z.array(Result),
  unreadable: z.array(UnreadableResult).meta({ description: 'unreadable results, which are skipped' }),
  last_id: z.string().meta({ description: 'the next `after`' }),
});

export const Cancelled = z.object({
  cancelled: z.union([z.string(), z.array(z.string())]).meta({ description: 'the run, or the rollouts' }),
});

export const RolloutState = z.union([
  z.object({ status: z.literal('done'), result: Result }),
  z.object({ status: z.enum(['waiting', 'running']), attempts: z.array(JournalEntry) }),
]);
