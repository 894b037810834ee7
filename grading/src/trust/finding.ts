/** What a judgement of trust is made from and made of: the evidence of one evaluation, and the findings about it. */
import type { Instance, Report } from '@swefarm/shared';
import type { EvaluationPlan } from '../plan/evaluationplan.ts';

export type Trust = Report['trust'];

export type TrustEvidence = {
  instance: Instance;
  plan: Pick<EvaluationPlan, 'grader' | 'parser' | 'evalScript'>;
  modelPatch: string | null;
  /** With \n line ends; null when the eval script did not run. */
  log: string | null;
  outcomes: ReadonlyMap<string, string> | null;
  /** The part of the log that the outcomes were read from; null when it could not be read. */
  text: string | null;
  resolved: boolean;
  /** As the runtime saw it; null: unknown. */
  scriptExitCode: number | null;
  imageDigest: string | null;
  /** The tests ran with a network. */
  egress?: boolean;
  /** Files that decide outcomes and are not as the image has them. */
  changedFiles?: readonly string[] | undefined;
  /** Why they are not known, although somebody looked. */
  changesUnknown?: string | undefined;
};

export type TrustFinding = { level: 'suspicious' | 'forged'; reason: string };
