/** The evidence of an evaluation for its verdict, and the outcomes that are read from it. */
import type { RewardComponents } from '@swefarm/shared';

export type Evidence = {
  /** Merged output of the script, with \n line ends. */
  log: string;
  /** As reported by the runtime; null if unknown. */
  exitCode: number | null;
  /** Existing files of the plan: absolute path → content. */
  files: ReadonlyMap<string, string>;
  /** Absent if the plan has no program, or the program did not run. */
  program?: ProgramEnd | undefined;
};

export type ProgramEnd = { output: string } | { failed: string };

/** The reason why there is no verdict. `raises`: the harness raises and writes no report. */
export type Unreadable =
  | 'bad_code'
  | 'no_markers'
  | 'test_patch_not_applied'
  | 'no_sign_of_tests'
  | 'exit_code_contradicts'
  | 'raises'
  | 'no_reward'
  /** The dataset's program failed to read the outcomes. */
  | 'parser_failed';

export type Outcomes =
  | {
      readable: true;
      /** Test → status word; empty if the source has no single tests. */
      outcomes: Map<string, string>;
      /** The part of the log that was read; null for another source. */
      text: string | null;
      /** The number that the source has in place of tests. */
      reward?: number;
      /** The components of the number. */
      parts?: RewardComponents;
      /** The result of all tests together, in place of single tests. */
      passed?: boolean;
      /** Maps a test of the instance to its name in the outcomes; default: the same name. */
      nameOf?: (test: string) => string;
    }
  | { readable: false; why: Unreadable; detail?: string };

export const unreadable = (why: Unreadable, detail?: string): Outcomes => ({
  readable: false,
  why,
  ...(detail === undefined ? {} : { detail }),
});

export const parserFailed = (detail: string): Outcomes => unreadable('parser_failed', detail);
