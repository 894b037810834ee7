/** The graders, and the steps of each to evaluate one instance. */
/** One way to apply the model patch; the first that exits 0 wins. Runs in /testbed, with the patch at `patchPath`. */
export type ApplyAttempt = { name: string; argv: string[] };

export type EvaluationPlan = {
  grader: GraderName;
  /** Canonical name of the log parser. */
  parser: string;
  /** Run in /testbed before the patch is applied, each must exit 0; absent for most graders (SWE-smith checks out its bug). */
  prepare?: string[][];
  /** Tried in order. */
  apply: ApplyAttempt[];
  /** Run between attempts (5.0.2 resets the tree); empty for others. */
  resetBetween: string[][];
  /** When all attempts fail but this exits 0, the patch counts as applied (5.0.2); null for others. */
  alreadyApplied: string[] | null;
  /** Bash text run as `/bin/bash /eval.sh`. */
  evalScript: string;
};

export type GraderName = 'swebench-4.1.0' | 'swebench-5.0.2' | 'swegym' | 'swesmith';
export type GraderChoice = 'auto' | GraderName;
