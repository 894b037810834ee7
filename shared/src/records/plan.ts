/**
 * How one patch of an instance is evaluated, as a record: what a dataset family asks for is decided once, where its rows are read, and
 * no worker knows families. An instance without a plan of its own is planned by its columns (`grading/src/plan/`).
 */
import { z } from 'zod';
import { MOST } from './bounds.ts';
import { Step } from './environment.ts';

const argv = z.array(z.string()).min(1);
const path = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** One way to apply the model patch, run in the working folder; the first that exits 0 wins. */
export const ApplyAttempt = z.object({ name: z.string(), argv });
export type ApplyAttempt = z.infer<typeof ApplyAttempt>;

/** Where the outcomes of the tests are read from, when the script has ended. */
export const OutcomeSource = z.discriminatedUnion('from', [
  /** The log, by a parser of the registry (`grading/src/dialects/registry.ts`); the dialect says which harness's, and which part of the log it reads. */
  z.object({ from: z.literal('log'), dialect: z.string(), parser: z.string() }),
  /** The script's own end: 0 is resolved. With `pattern`, the number that its first group finds in the log. */
  z.object({ from: z.literal('exit_code'), pattern: z.string().optional() }),
  /** A JUnit XML file that the tests wrote. */
  z.object({ from: z.literal('junit'), file: path }),
  /**
   * Code that is not ours: it comes with the row or from a package of the dataset's makers, and runs in a container of its own, without
   * network, that has these files, and in `/inputs` the log (`log`) and the plan's files by their base names. Its output is JSON.
   */
  z.object({
    from: z.literal('program'),
    /** Absolute path → content. */
    files: z.record(z.string(), z.string()),
    argv,
    /** The file it writes; absent: its standard output. */
    output: path.optional(),
    /** What the JSON looks like: `{"tests": [{"name", "status"}]}`, or `{name: status}`, or three lists (`passed_tests`, `failed_tests`, `skipped_tests`). */
    form: z.enum(['tests', 'map', 'sets']),
    /** `instance`: in a container of the instance's image; `tools`: of the image that the operator names for it. */
    image: z.enum(['instance', 'tools']).default('instance'),
    timeout: z.number().positive().max(MOST.seconds).default(120),
  }),
  /** A file that holds the reward: a number, or a JSON object of numbers with one named `reward`. */
  z.object({ from: z.literal('reward'), file: path }),
]);
export type OutcomeSource = z.infer<typeof OutcomeSource>;

/** How outcomes become a verdict; each rule is one file in `grading/src/verdict/`. */
export const VERDICT_RULES = [
  'swebench', // FAIL_TO_PASS and PASS_TO_PASS passed; a missing test failed, a skipped one counts nowhere
  'swebench-5', // as it, and a skipped test is no pass in FAIL_TO_PASS; ids that were cut in their brackets are found by their start
  'fail_only', // none of both lists failed; for logs that name failures alone
  'subset', // both lists are among the tests that passed
  'equal', // the tests that passed are exactly both lists
  'live', // no PASS_TO_PASS failed, every FAIL_TO_PASS passed
  'expected', // each test has the status of `expected`, and there are no others
  'classes', // Multi-SWE: each test is in the class that `stages` gives it
  'junit_ids', // Scale-SWE: both lists are found by their ids among the outcomes and passed; without outcomes, pytest's last summary line
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
        /** The class in which the row lists it, where that is not the one that `test` and `fix` make. */
        class: z.enum(['p2p', 'f2p', 's2p', 'n2p']).optional(),
      }),
    )
    .optional(),
});
export type Verdict = z.infer<typeof Verdict>;

/**
 * The clean container is set up as the agent's was (`InstanceEnvironment.setup`), then: `before`, the patch, `after`, the script, the
 * files, the outcomes, the verdict.
 */
export const InstancePlan = z.object({
  /** Whose rules these are, and of which version; stands in reports: `swesmith-0.0.9`. */
  grader: z.string().min(1),
  before: z.array(Step).max(MOST.setupSteps).default([]),
  patch_path: path.default('/tmp/patch.diff'),
  /** Tried in order. Empty: the script applies the patch itself. */
  apply: z.array(ApplyAttempt).default([]),
  /** Run between attempts, whatever they return. */
  reset_between: z.array(argv).default([]),
  /** When no attempt applies the patch and this exits 0, the patch counts as applied. */
  already_applied: argv.optional(),
  /** When no attempt applies the patch: `ends` without a verdict, or the tests run on the tree as it is. */
  unapplied: z.enum(['ends', 'tests_run']).default('ends'),
  /**
   * A patch of nothing. `tests_run` without it; `applied`: the same, but one of white space is applied as any other; `ends`: unresolved
   * without a run. Of an agent's work nothing is run in any case: the reward table decides.
   */
  blank: z.enum(['applied', 'tests_run', 'ends']).default('tests_run'),
  after: z.array(Step).max(MOST.setupSteps).default([]),
  /** Bash text, run as `/bin/bash /eval.sh`. */
  script: z.string(),
  /** The harness's own limit in seconds; the run's `evaluation.timeout` stands where it is smaller or this is absent. */
  timeout: z.number().positive().max(MOST.seconds).optional(),
  /** Read when the script has ended; one that is not there is left out. */
  files: z.array(path).default([]),
  outcomes: OutcomeSource,
  verdict: Verdict,
});
export type InstancePlan = z.infer<typeof InstancePlan>;
