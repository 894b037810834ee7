/** The pure core of grading: no I/O. What each grader must offer, and what it is given. */
export type StatusMap = Record<string, string>;

/** One way to try to apply the model patch; the first that exits 0 wins. Run in /testbed, the patch at `patchPath`. */
export type ApplyAttempt = { name: string; argv: string[] };

export type EvaluationPlan = {
  grader: GraderName;
  /** Canonical name of the log parser. */
  parser: string;
  /** Run in /testbed before the patch is applied, each must exit 0; absent for most (SWE-smith checks its bug out). */
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

export type EvaluationFacts = {
  patch_state: 'none' | 'empty' | 'too_large' | 'applied' | 'not_applied';
  applied_with: string | null;
  /** Merged stdout+stderr of the eval script; null when it did not run. */
  log: string | null;
  timed_out: boolean;
  timeout_seconds: number;
  exit_code: number | null;
  sandbox_killed: boolean;
  image_digest: string | null;
  /** Of the container in which the tests ran; absent: not known. */
  network?: 'none' | 'egress';
  /** Files that decide outcomes and are not as the image has them; absent where nobody looked. */
  changed_files?: string[];
  /** Why they are not known, although somebody looked. */
  changes_unknown?: string;
};

export type GraderName = 'swebench-4.1.0' | 'swebench-5.0.2' | 'swegym' | 'swesmith';
export type GraderChoice = 'auto' | GraderName;
