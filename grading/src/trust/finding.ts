import type { Instance, InstancePlan, Report } from '@swefarm/shared';

export type Trust = Report['trust'];

export type TrustEvidence = {
  instance: Instance;
  plan: Pick<InstancePlan, 'grader' | 'outcomes' | 'verdict' | 'script'>;
  modelPatch: string | null;
  /** Test log with \n line ends; null if the eval script did not run. */
  log: string | null;
  outcomes: ReadonlyMap<string, string> | null;
  /** The part of the log with the outcomes; null if there is none. */
  text: string | null;
  resolved: boolean;
  /** Score of a grader that scores. Other graders have only `resolved`. */
  score?: number | undefined;
  /** Whether the middle of the log is missing. */
  logCut?: boolean;
  /** Exit code that the runtime reported; null if unknown. */
  scriptExitCode: number | null;
  imageDigest: string | null;
  /** Whether the tests had a network. */
  egress?: boolean;
  /** Files that decide outcomes and differ from the image. */
  changedFiles?: readonly string[] | undefined;
  /** Why the check for changed files failed. */
  changesUnknown?: string | undefined;
};

export type TrustFinding = { level: 'suspicious' | 'forged'; reason: string };

export const suspicious = (reason: string): TrustFinding => ({ level: 'suspicious', reason });

/** Returns whether the score is positive, so that the result earns a reward. */
export const wins = ({ score }: Pick<TrustEvidence, 'score'>): boolean => score !== undefined && score > 0;

/** Returns a finding that proves a forgery or only justifies a doubt. */
export const forgedIf = (proven: boolean, reason: string): TrustFinding => ({
  level: proven ? 'forged' : 'suspicious',
  reason,
});

/** Returns the first three items, and the number of all items if there are more. */
export const listed = (items: readonly string[]): string =>
  items.slice(0, 3).join(', ') + (items.length > 3 ? `, … (${items.length})` : '');
