/**
 * The plan of an evaluation. The reader of a dataset family makes it, so workers do not depend on families. An instance without a plan
 * is planned by its columns (`grading/src/plan/`).
 */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { Step } from './environment.ts';

const argv = z.array(z.string()).min(1);
const path = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** A command that applies the patch in the working folder; the first that exits with 0 counts. */
export const ApplyAttempt = z.object({ name: z.string(), argv });
export type ApplyAttempt = z.infer<typeof ApplyAttempt>;

/** The source of test outcomes after the script. */
export const OutcomeSource = z.discriminatedUnion('from', [
  /** The log, read by a parser of a dialect (`grading/src/dialects/registry.ts`). */
  z.object({ from: z.literal('log'), dialect: z.string(), parser: z.string() }),
  /** The exit code of the script: 0 is resolved. With `pattern`, the number of its first group in the log. */
  z.object({ from: z.literal('exit_code'), pattern: z.string().optional() }),
  /** A JUnit XML file of the tests. */
  z.object({ from: z.literal('junit'), file: path }),
  /**
   * A program of the dataset, which runs in a container without network. The container has `files`, and in `/inputs` the log (`log`)
   * and the plan's files by base name. The program writes JSON.
   */
  z.object({
    from: z.literal('program'),
    /** Absolute path → content. */
    files: z.record(z.string(), z.string()),
    argv,
    /** Output file; absent: standard output. */
    output: path.optional(),
    /** `{"tests": [{"name", "status"}]}`, `{name: status}`, or three lists (`passed_tests`, `failed_tests`, `skipped_tests`). */
    form: z.enum(['tests', 'map', 'sets']),
    /** `instance`: the instance's image; `tools`: `parser_image` of the worker. */
    image: z.enum(['instance', 'tools']).default('instance'),
    timeout: z.number().positive().max(MOST.seconds).default(120),
  }),
  /** A file with the reward: a number, or a JSON object of numbers with `reward`. */
  z.object({ from: z.literal('reward'), file: path }),
]);
export type OutcomeSource = z.infer<typeof OutcomeSource>;

/** Rules of verdicts, each in one file of `grading/src/verdict/`. */
export const VERDICT_RULES = [
  'swebench', // FAIL_TO_PASS and PASS_TO_PASS passed; a missing test failed, a skipped test does not count
  'swebench-5', // as swebench, but a skipped test of FAIL_TO_PASS did not pass; ids cut within brackets match by prefix
  'fail_only', // no test of both lists failed; for logs with failures only
  'subset', // all tests of both lists passed
  'equal', // the passed tests are exactly those of both lists
  'live', // no PASS_TO_PASS failed, every FAIL_TO_PASS passed
  'expected', // each test has the status of `expected`, and there are no others
  'classes', // Multi-SWE: each test is in its class of `stages`
  'junit_ids', // Scale-SWE: both lists passed, found by ids; without outcomes, pytest's last summary line
  'exit_code',
  'reward',
] as const;

export const Verdict = z.object({
  rule: z.enum(VERDICT_RULES),
  /** For `expected`: test → status. */
  expected: z.record(z.string(), z.string()).optional(),
  /** For `classes`: test → its statuses (PASS, FAIL, SKIP, NONE) without any patch, with the test patch, with gold. */
  stages: z
    .record(
      z.string(),
      z.object({
        run: z.string(),
        test: z.string(),
        fix: z.string(),
        /** The row's class, if it differs from that of `test` and `fix`. */
        class: z.enum(['p2p', 'f2p', 's2p', 'n2p']).optional(),
      }),
    )
    .optional(),
});
export type Verdict = z.infer<typeof Verdict>;

/** Steps after the setup of the clean container: `before`, the patch, `after`, the script, the files, the outcomes, the verdict. */
export const InstancePlan = z.object({
  /** Name and version of the rules, for reports: `swesmith-0.0.9`. */
  grader: z.string().min(1),
  before: z.array(Step).max(MOST.setupSteps).default([]),
  patch_path: path.default('/tmp/patch.diff'),
  /** Attempts in order; empty: the script applies the patch. */
  apply: z.array(ApplyAttempt).default([]),
  /** Commands between attempts, whose exit codes are ignored. */
  reset_between: z.array(argv).default([]),
  /** Exits with 0 if a patch that no attempt applies counts as applied. */
  already_applied: argv.optional(),
  /** If no attempt applies the patch: end without a verdict, or run the tests on the unchanged tree. */
  unapplied: z.enum(['ends', 'tests_run']).default('ends'),
  /**
   * An empty patch. `tests_run`: run the tests without it; `applied`: the same, but apply a patch of white space; `ends`: unresolved
   * without a run. For the empty patch of an agent the reward table decides, without a run.
   */
  blank: z.enum(['applied', 'tests_run', 'ends']).default('tests_run'),
  after: z.array(Step).max(MOST.setupSteps).default([]),
  /** Bash script, run as `/bin/bash /eval.sh`. */
  script: z.string(),
  /** The harness's limit in seconds; the smaller of it and the run's `evaluation.timeout` applies. */
  timeout: z.number().positive().max(MOST.seconds).optional(),
  /** Files to read after the script; missing files are omitted. */
  files: z.array(path).default([]),
  outcomes: OutcomeSource,
  verdict: Verdict,
});
export type InstancePlan = z.infer<typeof InstancePlan>;
