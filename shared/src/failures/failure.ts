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

const rule = (
  stage: FailureStage,
  budget: number,
  where: FailureRule['where'],
  meaning: string,
): FailureRule => ({ stage, retryable: where !== 'nowhere', budget, where, meaning });

export const FAILURES = {
  image_not_found: rule('image', 1, 'nowhere', 'no source this node knows has the image'),
  image_pull: rule('image', 3, 'anywhere', 'the image could not be pulled or unpacked'),
  engine_unreachable: rule('sandbox', 5, 'elsewhere', 'the container engine does not answer'),
  sandbox_start: rule('sandbox', 3, 'elsewhere', 'the container could not be created or started'),
  sandbox_lost: rule(
    'sandbox',
    3,
    'elsewhere',
    'the container disappeared or its stream broke, for no known cause',
  ),
  node_memory: rule('sandbox', 3, 'elsewhere', 'the node itself ran out of memory'),
  node_disk: rule('sandbox', 3, 'elsewhere', 'the node itself ran out of disk'),
  patch_take: rule('sandbox', 2, 'anywhere', 'the node failed to take the patch from the tree'),
  policy_unreachable: rule('policy', 5, 'anywhere', 'the endpoint refuses connections or resets them'),
  policy_unauthorized: rule('policy', 1, 'nowhere', 'the endpoint refuses our key (401, 403)'),
  policy_model_unknown: rule('policy', 1, 'nowhere', 'the endpoint does not know the model (404)'),
  policy_bad_request: rule(
    'policy',
    1,
    'nowhere',
    'the endpoint refuses our request (400, 422), not for its length',
  ),
  policy_context: rule('policy', 1, 'nowhere', 'the first prompt leaves no room for an answer'),
  policy_server_error: rule(
    'policy',
    5,
    'anywhere',
    'the endpoint answered 5xx or 429 for longer than --patience',
  ),
  policy_garbage: rule('policy', 3, 'anywhere', 'the endpoint answered no completion'),
  policy_silent: rule('policy', 3, 'anywhere', 'the endpoint accepted the request and never answered'),
  policy_slow: rule(
    'policy',
    2,
    'anywhere',
    'time limit reached, at least half of it spent waiting for a silent or slow policy',
  ),
  policy_tokens: rule('policy', 1, 'nowhere', 'token ids missing, of unequal lengths or not contiguous'),
  evaluation_timeout: rule(
    'evaluation',
    1,
    'nowhere',
    'the tests timed out twice, and neither gold nor a control evaluation is known to need under half of the limit',
  ),
  evaluation_lost: rule('evaluation', 3, 'elsewhere', 'the evaluation container or its output was lost'),
  parse_timeout: rule('evaluation', 2, 'anywhere', 'not even an empty test log was read in time'),
  tests_cannot_start: rule(
    'instance',
    1,
    'nowhere',
    'the tests cannot start, and nothing shows that they start without the patch',
  ),
  no_bash: rule('instance', 1, 'nowhere', 'the image has no usable bash'),
  no_worktree: rule('instance', 1, 'nowhere', 'the image has no git work tree where the row expects it'),
  sandbox_refused: rule(
    'instance',
    2,
    'elsewhere',
    'no sandbox can be as the run or its image asks: limits beyond those of the node, an unknown user',
  ),
  setup_failed: rule(
    'instance',
    2,
    'elsewhere',
    'a setup step failed, or a hidden path could not be removed',
  ),
  parser_failed: rule(
    'instance',
    1,
    'nowhere',
    'the outcomes are unreadable (the program of the dataset failed, or the test log exceeds log_limit), and nothing shows that they are readable without the patch',
  ),
  no_parser_image: rule(
    'worker',
    2,
    'elsewhere',
    'this worker has no parser_image, in which programs of datasets read the outcomes',
  ),
  instance_invalid: rule('instance', 1, 'nowhere', 'the row lacks what a rollout or its grading needs'),
  artifact_store: rule('worker', 5, 'elsewhere', 'the artifact could not be written'),
  session_lost: rule(
    'worker',
    1,
    'nowhere',
    'the sandbox of a session is gone; its commands cannot be replayed',
  ),
  lost: rule(
    'worker',
    3,
    'elsewhere',
    'the worker stopped responding; after three consecutive losses the rollout is parked',
  ),
  bug: rule('worker', 1, 'nowhere', 'an unforeseen error: a bug of swefarm'),
} as const satisfies Record<string, FailureRule>;

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
