/**
 * The plan of an evaluation. The reader of a dataset family makes the plan, so workers do not depend on families. For an instance without a
 * plan, `grading/src/plan/` makes one from the columns.
 */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { Step } from './environment.ts';

const argv = z.array(z.string()).min(1);
const path = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** A command that applies the patch in the working folder. The first command that exits with 0 counts. */
export const ApplyAttempt = z.object({ name: z.string(), argv });
export type ApplyAttempt = z.infer<typeof ApplyAttempt>;

/** The source of the test outcomes, after the evaluation script has ended. */
export const OutcomeSource = z.discriminatedUnion('from', [
  /** The log, read by a parser of a dialect (`grading/src/dialects/registry.ts`). */
  z.object({ from: z.literal('log'), dialect: z.string(), parser: z.string() }),
  /** The exit code of the script; 0 is resolved. With `pattern`: the last number in the log that the first group matches. */
  z.object({ from: z.literal('exit_code'), pattern: z.string().optional() }),
  /** A JUnit XML file of the tests. */
  z.object({ from: z.literal('junit'), file: path }),
  /**
   * A program of the dataset, which writes JSON. It runs without network in a container with `files`; `/inputs` contains the log (`log`)
   * and the files of the plan by base name.
   */
  z.object({
    from: z.literal('program'),
    /** Content of each file by absolute path. */
    files: z.record(z.string(), z.string()),
    argv,
    /** Path of the output; absent: standard output. */
    output: path.optional(),
    /** Form: `{"tests": [{"name", "status"}]}`, `{name: status}`, or lists `passed_tests`, `failed_tests`, `skipped_tests`. */
    form: z.enum(['tests', 'map', 'sets']),
    /** Image in which the program runs: that of the instance, or (`tools`) the `parser_image` of the worker. */
    image: z.enum(['instance', 'tools']).default('instance'),
    timeout: z.number().positive().max(MOST.seconds).default(120),
  }),
  /** A file with the reward: a number, or a JSON object of numbers with `reward`. */
  z.object({ from: z.literal('reward'), file: path }),
  /**
   * The rewards in `reward.json` of a folder, or in `reward.txt` if the folder has no `reward.json`, as in Harbor. `key` selects one of
   * several rewards. If `key` is absent, the key is `reward` or the only key.
   */
  z.object({ from: z.literal('rewards'), folder: path, key: z.string().optional() }),
]);
export type OutcomeSource = z.infer<typeof OutcomeSource>;

/** Rules of verdicts; `grading/src/verdict/rules.ts` has a function for each. */
export const VERDICT_RULES = [
  'swebench', // FAIL_TO_PASS and PASS_TO_PASS passed; a missing test failed, a skipped test does not count
  'swebench-5', // as swebench, but a skipped test of FAIL_TO_PASS did not pass; ids cut inside brackets match by prefix
  'fail_only', // no test of either list failed; for logs that show only failures
  'subset', // all tests of both lists passed
  'equal', // the passed tests are exactly those of both lists
  'live', // no test of PASS_TO_PASS failed, and every test of FAIL_TO_PASS passed
  'expected', // each test of `expected` has its status, and there are no other tests
  'classes', // Multi-SWE: each test has the class that `stages` names
  'junit_ids', // Scale-SWE: the script reports a pass, or tests of both lists passed; without outcomes, pytest's summary line decides
  'exit_code',
  'reward',
] as const;

const Verdict = z.object({
  rule: z.enum(VERDICT_RULES),
  /** Status of each test, for the rule `expected`. */
  expected: z.record(z.string(), z.string()).optional(),
  /** Statuses of each test, for the rule `classes`: without a patch, with the test patch, with gold (PASS, FAIL, SKIP, NONE). */
  stages: z
    .record(
      z.string(),
      z.object({
        run: z.string(),
        test: z.string(),
        fix: z.string(),
        /** Class of the test in the row, if it differs from the class by `test` and `fix`. */
        class: z.enum(['p2p', 'f2p', 's2p', 'n2p']).optional(),
      }),
    )
    .optional(),
});

/** The plan of an evaluation, in this order: `before`, the patch, `after`, the script, the files, the outcomes, the verdict. */
export const InstancePlan = z.object({
  /** Name and version of the rules, for reports: `swesmith-0.0.9`. */
  grader: z.string().min(1),
  before: z.array(Step).max(MOST.setupSteps).default([]),
  patch_path: path.default('/tmp/patch.diff'),
  /** Commands that apply the patch, tried in order; empty: the script applies the patch. */
  apply: z.array(ApplyAttempt).default([]),
  /** Commands that run between two attempts to apply the patch; their exit codes are ignored. */
  reset_between: z.array(argv).default([]),
  /** Command that exits with 0 if a patch that no attempt applied counts as applied. */
  already_applied: argv.optional(),
  /** What happens if no attempt applies the patch. `ends`: unresolved without tests. `tests_run`: run the tests on the unchanged tree. */
  unapplied: z.enum(['ends', 'tests_run']).default('ends'),
  /**
   * What happens with an empty patch. `tests_run`: run the tests without the patch. `applied`: apply a patch of white space, then run the
   * tests. `ends`: unresolved without a run. An agent's empty patch is never run; the reward table decides.
   */
  blank: z.enum(['applied', 'tests_run', 'ends']).default('tests_run'),
  after: z.array(Step).max(MOST.setupSteps).default([]),
  /** Bash script, run as `/bin/bash /eval.sh`. */
  script: z.string(),
  /** Time limit of the harness in seconds; the `evaluation.timeout` of the run applies if it is smaller. */
  timeout: z.number().positive().max(MOST.seconds).optional(),
  /** Files to read after the script; missing files are omitted. */
  files: z.array(path).default([]),
  outcomes: OutcomeSource,
  verdict: Verdict,
});
export type InstancePlan = z.infer<typeof InstancePlan>;
