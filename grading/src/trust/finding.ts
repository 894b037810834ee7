/** The input and output of a trust check: the evidence of one evaluation, and the findings. */
import type { Instance, InstancePlan, Report } from '@swefarm/shared';

export type Trust = Report['trust'];

export type TrustEvidence = {
  instance: Instance;
  plan: Pick<InstancePlan, 'grader' | 'outcomes' | 'verdict' | 'script'>;
  modelPatch: string | null;
  /** With \n line ends; null if the eval script did not run. */
  log: string | null;
  outcomes: ReadonlyMap<string, string> | null;
  /** The part of the log with the outcomes; null if it could not be read. */
  text: string | null;
  resolved: boolean;
  /** The log lacks its middle. */
  logCut?: boolean;
  /** As reported by the runtime; null if unknown. */
  scriptExitCode: number | null;
  imageDigest: string | null;
  /** Whether the tests had a network. */
  egress?: boolean;
  /** Files that decide outcomes and differ from the image. */
  changedFiles?: readonly string[] | undefined;
  /** The reason why the check for changed files failed. */
  changesUnknown?: string | undefined;
};

export type TrustFinding = { level: 'suspicious' | 'forged'; reason: string };
