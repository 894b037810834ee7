/** The table of infrastructure failures, for decisions about retries, metrics and docs. */
import { z } from 'zod';
import { SwefarmError } from './errors.ts';

export const FailureStage = z.enum(['image', 'sandbox', 'policy', 'evaluation', 'worker', 'instance']);
export type FailureStage = z.infer<typeof FailureStage>;

export type FailureRule = {
  stage: FailureStage;
  retryable: boolean;
  /** Attempts that may end in this class before the rollout is committed as failed. */
  budget: number;
  /** Where the next attempt should run. */
  where: 'anywhere' | 'elsewhere' | 'nowhere';
  meaning: string;
};

const retried =
  (where: FailureRule['where']) =>
  (stage: FailureStage, budget: number, meaning: string): FailureRule => ({
    stage,
    retryable: true,
    budget,
    where,
    meaning,
  });
const anywhere = retried('anywhere');
const elsewhere = retried('elsewhere');
const nowhere = (stage: FailureStage, meaning: string): FailureRule => ({
  stage,
  retryable: false,
  budget: 1,
  where: 'nowhere',
  meaning,
});

export const FAILURES = {
  image_not_found: nowhere('image', 'no source this node knows has the image'),
  image_pull: anywhere('image', 3, 'the image could not be pulled or unpacked'),
  image_build: nowhere(
    'image',
    'a step of the build of a Harbor task fails, or the Dockerfile cannot be read',
  ),
  image_not_built: elsewhere(
    'image',
    2,
    'the build of a Harbor task exceeded its time limit, or the node cannot build images',
  ),
  engine_unreachable: elsewhere('sandbox', 5, 'the container engine does not answer'),
  sandbox_start: elsewhere('sandbox', 3, 'the container could not be created or started'),
  sandbox_lost: elsewhere('sandbox', 3, 'the container disappeared or its stream broke, for no known cause'),
  node_memory: elsewhere('sandbox', 3, 'the node itself ran out of memory'),
  node_disk: elsewhere('sandbox', 3, 'the node itself ran out of disk'),
  patch_take: anywhere('sandbox', 2, 'the node failed to take the patch from the tree'),
  policy_unreachable: anywhere('policy', 5, 'the endpoint refuses connections or resets them'),
  policy_unauthorized: nowhere('policy', 'the endpoint refuses our key (401, 403)'),
  policy_model_unknown: nowhere('policy', 'the endpoint does not know the model (404)'),
  policy_bad_request: nowhere('policy', 'the endpoint refuses our request (400, 422), not for its length'),
  policy_context: nowhere('policy', 'the first prompt leaves no room for an answer'),
  policy_server_error: anywhere('policy', 5, 'the endpoint answered 5xx or 429 for longer than --patience'),
  policy_garbage: anywhere('policy', 3, 'the endpoint answered no completion'),
  policy_silent: anywhere('policy', 3, 'the endpoint accepted the request and never answered'),
  policy_slow: anywhere(
    'policy',
    2,
    'time limit reached, at least half of it spent waiting for a silent or slow policy',
  ),
  policy_tokens: nowhere('policy', 'token ids missing, of unequal lengths or not contiguous'),
  policy_template: nowhere(
    'policy',
    'the chat template cannot render the messages, or cannot continue an answer',
  ),
  evaluation_timeout: nowhere(
    'evaluation',
    'the tests timed out twice, and neither gold nor a control evaluation is known to need under half of the limit',
  ),
  evaluation_lost: elsewhere('evaluation', 3, 'the evaluation container or its output was lost'),
  parse_timeout: anywhere('evaluation', 2, 'not even an empty test log was read in time'),
  tests_cannot_start: nowhere(
    'instance',
    'the tests cannot start, and nothing shows that they start without the patch',
  ),
  no_bash: nowhere('instance', 'the image has no usable bash'),
  no_worktree: nowhere('instance', 'the image has no git work tree where the row expects it'),
  sandbox_refused: elsewhere(
    'instance',
    2,
    'no sandbox can be as the run or its image asks: limits beyond those of the node, an unknown user',
  ),
  branch_differs: elsewhere(
    'instance',
    2,
    'the commands of the turns that a branch continues print something else in a fresh sandbox',
  ),
  setup_failed: elsewhere('instance', 2, 'a setup step failed, or a hidden path could not be removed'),
  parser_failed: nowhere(
    'instance',
    'the outcomes are unreadable (the program of the dataset failed, or the test log exceeds log_limit), and nothing shows that they are readable without the patch',
  ),
  no_agent: elsewhere(
    'worker',
    2,
    "this worker has no bundle of the run's agent, or one with another lock; see swefarm agents install",
  ),
  agent_unfit: nowhere(
    'instance',
    "the image lacks what the run's agent needs: a program, or a newer C library",
  ),
  agent_start: elsewhere('worker', 2, 'the program of the agent ended before it asked its model'),
  no_parser_image: elsewhere(
    'worker',
    2,
    'this worker has no parser_image, in which programs of datasets read the outcomes',
  ),
  instance_invalid: nowhere('instance', 'the row lacks what a rollout or its grading needs'),
  artifact_store: elsewhere('worker', 5, 'the artifact could not be written'),
  session_lost: nowhere('worker', 'the sandbox of a session is gone; its commands cannot be replayed'),
  lost: elsewhere(
    'worker',
    3,
    'the worker stopped responding; after three consecutive losses the rollout is parked',
  ),
  bug: nowhere('worker', 'an unforeseen error: a bug of swefarm'),
} satisfies Record<string, FailureRule>;

export type FailureClass = keyof typeof FAILURES;
export const FAILURE_CLASSES = Object.keys(FAILURES) as [FailureClass, ...FailureClass[]];

export const Failure = z.object({
  stage: FailureStage,
  class: z.enum(FAILURE_CLASSES),
  message: z.string().max(400),
  /** Number of attempts that the rollout had. */
  attempts: z.number().int().nonnegative(),
});
export type Failure = z.infer<typeof Failure>;

/** Thrown in a worker if infrastructure, not the agent, is at fault. */
export class RolloutFailure extends SwefarmError {
  override readonly name = 'RolloutFailure';
  readonly failureClass: FailureClass;
  readonly stage: FailureStage;

  constructor(failureClass: FailureClass, message: string, options: { cause?: unknown } = {}) {
    super(failureClass, message, { ...options, retryable: FAILURES[failureClass].retryable });
    this.failureClass = failureClass;
    this.stage = FAILURES[failureClass].stage;
  }
}
