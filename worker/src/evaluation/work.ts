/** Work to evaluate, what an evaluation needs, and the facts that it yields. */
import type { EvaluationFacts } from '@swefarm/grading';
import type { Container, Removals, Runtime } from '@swefarm/sandbox';
import type { CollectedArtifact, Instance, InstancePlan } from '@swefarm/shared';

export type CleanRunDeps = {
  /** Opens a new container of the instance's image, set up for the evaluation. */
  container: () => Promise<Container>;
  /** Opens a new container in which nothing has run; absent: `container` opens one. */
  bare?: () => Promise<Container>;
  /** Opens a new container of the agent's image for the solution of a Harbor task whose verifier is separate. */
  workContainer: () => Promise<Container>;
  /** Reports a problem with the artifacts of a Harbor task. */
  warn: (message: string) => void;
  /** Removes containers in the background, so that grading does not wait for them. */
  removals: Removals;
  timeoutSeconds: number;
  logLimit: number;
  imageDigest: string;
  network: 'none' | 'egress';
  runtime: Pick<Runtime, 'diskFree'>;
  /** Whether the worker took the patch from the agent's tree. */
  fromTree: boolean;
  diskBytes: number | null;
  /** By how much a container on this node has less memory than the harness gives the instance; null: it has as much. */
  shortMemory: string | null;
  /** Time limit of the solution of a Harbor task. If it is absent, the time limit of the tests applies. */
  solutionSeconds?: number;
  signal: AbortSignal;
};

/** `collected`: work for the separate verifier of a Harbor task. If it is absent, the solution `patch` runs first. */
export type Work = {
  instance: Instance;
  plan: InstancePlan;
  patch: string;
  collected?: readonly CollectedArtifact[];
};

export type Ran = {
  facts: Omit<EvaluationFacts, 'log'>;
  /** The node's disk during the run and at its end. `full`: perhaps another sandbox filled it; `filled`: this sandbox filled it. */
  disk: 'free' | 'full' | 'filled';
  log: Buffer | null;
  /** Artifacts of a Harbor task; absent for other instances. */
  collected?: readonly CollectedArtifact[];
  startSeconds: number;
  testsSeconds: number;
};
