/** What an evaluation left for its verdict, and what was read from that. */
import type { RewardComponents } from '@swefarm/shared';

export type Evidence = {
  /** Merged output of the script, with only \n line ends, as the harnesses read it. */
  log: string;
  /** As reported by the runtime; null: not known. */
  exitCode: number | null;
  /** Those of the plan's files that were there: absolute path → content. */
  files: ReadonlyMap<string, string>;
  /** What the plan's program wrote, or why it wrote nothing; absent where the plan has none, or it did not run. */
  program?: ProgramEnd | undefined;
};

export type ProgramEnd = { output: string } | { failed: string };

/** Why there is nothing to judge; `raises`: the harness itself raises and writes no report. */
export type Unreadable =
  | 'bad_code'
  | 'no_markers'
  | 'test_patch_not_applied'
  | 'no_sign_of_tests'
  | 'exit_code_contradicts'
  | 'raises'
  /** The file of the reward holds none. */
  | 'no_reward'
  /** The program that reads the outcomes, which is not ours, is at fault. */
  | 'parser_failed';

export type Outcomes =
  | {
      readable: true;
      /** Test → status word; empty where the source knows no tests. */
      outcomes: Map<string, string>;
      /** The part of the log that was read; null when it was another source. */
      text: string | null;
      /** The number that the source gives in place of tests. */
      reward?: number;
      /** What the number is made of. */
      parts?: RewardComponents;
      /** What the source says of all tests together, in place of each. */
      passed?: boolean;
      /** How outcomes name a test of the instance; absent: as the instance does. */
      nameOf?: (test: string) => string;
    }
  | { readable: false; why: Unreadable; detail?: string };

export const unreadable = (why: Unreadable, detail?: string): Outcomes => ({
  readable: false,
  why,
  ...(detail === undefined ? {} : { detail }),
});

export const parserFailed = (detail: string): Outcomes => unreadable('parser_failed', detail);
