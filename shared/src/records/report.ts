/** The grading of one patch: the official verdict, and beside it, never inside it, how far it can be trusted. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

export const TestStatus = z.enum(['PASSED', 'FAILED', 'ERROR', 'SKIPPED', 'XFAIL']);
export type TestStatus = z.infer<typeof TestStatus>;

/** `success` / `failure` test ids of one category, as in the harness's report.json. */
const Bucket = z.object({ success: z.array(z.string()), failure: z.array(z.string()) });

export const PatchState = z.enum([
  'none', // null or never taken
  'empty',
  'too_large', // over 10 MB
  'applied',
  'not_applied',
]);
export type PatchState = z.infer<typeof PatchState>;

/** How the evaluation itself ended, before any verdict. */
export const EvaluationEnd = z.enum([
  'not_run',
  'completed',
  'timed_out',
  'tests_cannot_start', // the log holds no readable test outcome
  'parser_failed', // the program of the dataset that reads the outcomes is at fault, or what the tests gave it
  'sandbox_killed', // by its own memory or pids limit, or by what ran in it
]);
export type EvaluationEnd = z.infer<typeof EvaluationEnd>;

/** A number that a dataset's own grader gives; what lies outside of the bounds is refused, never cut. */
export const Score = z.number().min(-MOST.score).max(MOST.score);

/** Its parts by name, as the grader names them; they need not add up to it. */
export const RewardComponents = z
  .record(
    z.string().regex(/^[\w.:/ -]{1,64}$/, { error: 'expected at most 64 letters, digits or ._:/ -' }),
    Score,
  )
  .refine((parts) => Object.keys(parts).length <= MOST.components, {
    error: `expected at most ${MOST.components} parts`,
  });
export type RewardComponents = z.infer<typeof RewardComponents>;

export const Report = z.object({
  format: z.literal('swefarm-report-1'),
  instance_id: z.string(),
  patch_state: PatchState,
  evaluation: EvaluationEnd,
  /** The official verdict, to the letter of the grader; null when there was nothing to judge, or the grader gives a score and no verdict. */
  resolved: z.boolean().nullable(),
  /** The number that the grader gives in place of a verdict or beside it; absent where the verdict is all. */
  score: Score.nullable().optional(),
  reward_components: RewardComponents.optional(),
  tests_status: z
    .object({
      FAIL_TO_PASS: Bucket,
      PASS_TO_PASS: Bucket,
      FAIL_TO_FAIL: Bucket,
      PASS_TO_FAIL: Bucket,
    })
    .nullable(),
  /** Why the grader did not read the log that was there (`no_markers`, `raises`, …); absent when it did. */
  unreadable: z.string().optional(),
  /** Every test the parser saw; the status is the parser's word (normally a {@link TestStatus}). */
  status_map: z.record(z.string(), z.string()).nullable(),
  /** Tests that `status_map` leaves out, because their names are too long or too many; absent: none. The verdict counts them. */
  statuses_omitted: z.number().int().positive().optional(),
  /** Command that applied the patch, as in the harness's order. */
  applied_with: z.string().nullable(),
  test_exit_code: z.number().int().nullable(),
  grader: z.string(),
  parser: z.string().nullable(),
  image_digest: z.string().nullable(),
  trust: z.object({
    level: z.enum(['clean', 'suspicious', 'forged']),
    reasons: z.array(z.string()),
  }),
});
export type Report = z.infer<typeof Report>;
