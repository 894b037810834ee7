/** What the evaluation of a patch needs of its attempt. */
import type { Container, ReadyImage } from '@swefarm/sandbox';
import type { EvaluationDeps } from '../evaluation/evaluate.ts';
import { networkOf, shortMemory, startBare, startProgram, startWork } from './containers.ts';
import type { Task } from './context.ts';

/** Images of the agent's container and of the evaluation. They differ only for a Harbor task whose verifier is separate. */
export type Images = { agent: ReadyImage; evaluation: ReadyImage };

type Given = Pick<EvaluationDeps, 'evaluateEmpty' | 'fromTree' | 'goldTimeShare' | 'purpose'> & {
  images: Images;
  /** Returns the clean container. */
  container: () => Promise<Container>;
};

export function evaluationDeps(task: Task, { images, ...given }: Given): EvaluationDeps {
  const { evaluation: image } = images;
  const { run, signal, services } = task;
  const { threads, removals, evaluationLock, runtime } = services;
  return {
    ...given,
    bare: () => startBare(task, image),
    workContainer: () => startWork(task, images.agent),
    warn: (message) => task.log.warn(message),
    startProgram: (which) => startProgram(task, which === 'instance' ? image : null),
    threads,
    removals,
    evaluationLock,
    timeoutSeconds: run.evaluation.timeout,
    logLimit: run.evaluation.log_limit,
    count: (labels) => services.metrics.evaluations.inc(labels),
    imageDigest: image.digest,
    network: networkOf(task, 'evaluation'),
    runtime,
    diskBytes: run.sandbox.disk_bytes,
    shortMemory: shortMemory(task),
    solutionSeconds: run.agent.time_limit,
    signal,
  };
}
