/** Input and output of a trust judgement: the evidence of one evaluation, and the findings about it. */
import type { Instance, InstancePlan, Report } from '@swefarm/shared';

export type Trust = Report['trust'];

export type TrustEvidence = {
  instance: Instance;
  plan: Pick<InstancePlan, 'grader' | 'outcomes' | 'verdict' | 'script'>;
  modelPatch: string | null;
  /** With \n line ends; null when the eval script did not run. */
  log: string | null;
  outcomes: ReadonlyMap<string, string> | null;
  /** The part of the log that gave the outcomes; null when it could not be read. */
  text: string | null;
  resolved: boolean;
  /** The log lacks its middle. */
  logCut?: boolean;
  /** As reported by the runtime; null: unknown. */
  scriptExitCode: number | null;
  imageDigest: string | null;
  /** Whether the tests ran with a network. */
  egress?: boolean;
  /** Files that decide outcomes and differ from the image. */
  changedFiles?: readonly string[] | undefined;
  /** Why the check for changed files gave no answer. */
  changesUnknown?: string | undefined;
};

export type TrustFinding = { level: 'suspicious' | 'forged'; reason: string };
