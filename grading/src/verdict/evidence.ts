import type { RewardComponents } from '@swefarm/shared';

export type Evidence = {
  /** Merged stdout and stderr of the script, with \n line ends. */
  log: string;
  /** Exit code of the script that the runtime reported; null if unknown. */
  exitCode: number | null;
  /** Contents of the plan's files that exist, by absolute path. */
  files: ReadonlyMap<string, string>;
  /** Result of the plan's program; absent if the plan has no program, or the program did not run. */
  program?: ProgramEnd | undefined;
};

export type ProgramEnd = { output: string } | { failed: string };

/** Why there is no verdict. `raises`: the harness raises an exception and writes no report. */
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
      /** Status word of each test; empty if the source has no single tests. */
      outcomes: Map<string, string>;
      /** Part of the log that the parser read; null if the source is not a log. */
      text: string | null;
      /** Reward from a source that has no tests. */
      reward?: number;
      parts?: RewardComponents;
      /** Whether all tests passed, from a source that has no single tests. */
      passed?: boolean;
      /** Maps a test of the instance to its name in the outcomes; default: the same name. */
      nameOf?: (test: string) => string;
    }
  /** `parts` has the rewards of a file that lacks the reward that counts. */
  | { readable: false; why: Unreadable; detail?: string; parts?: RewardComponents };

export const unreadable = (why: Unreadable, detail?: string): Outcomes => ({
  readable: false,
  why,
  ...(detail === undefined ? {} : { detail }),
});

export const parserFailed = (detail: string): Outcomes => unreadable('parser_failed', detail);
