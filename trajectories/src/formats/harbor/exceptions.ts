/**
 * Maps failures of rollouts to the exceptions of Harbor 0.25. Harbor determines the cause and the retry from the exception
 * (harbor/models/trial/error_policy.py).
 */
import type { ExitStatus, FailureClass } from '@swefarm/shared';
import type { OutputLine } from '../../output/line.ts';

/** If Harbor's table lacks an exception, Harbor uses the cause `unclassified`. */
const OF_FAILURE: Readonly<Record<FailureClass, string>> = {
  image_not_found: 'SandboxBuildFailedError',
  image_pull: 'SandboxBuildFailedError',
  image_build: 'SandboxBuildFailedError',
  image_not_built: 'SandboxBuildFailedError',
  engine_unreachable: 'EnvironmentStartTimeoutError',
  sandbox_start: 'EnvironmentStartTimeoutError',
  sandbox_lost: 'RuntimeRequestError',
  node_memory: 'SandboxLikelyOutOfMemoryError',
  node_disk: 'RuntimeRequestError',
  patch_take: 'RuntimeRequestError',
  policy_unreachable: 'NetworkConnectionError',
  policy_unauthorized: 'AgentAuthenticationError',
  policy_model_unknown: 'ModelNotFoundError',
  policy_bad_request: 'BadRequestError',
  policy_context: 'ContextWindowExceededError',
  policy_server_error: 'ApiInternalServerError',
  policy_garbage: 'UnknownApiError',
  policy_silent: 'ApiResponseStalledError',
  policy_slow: 'ApiResponseStalledError',
  policy_tokens: 'APIResponseValidationError',
  policy_template: 'BadRequestError',
  evaluation_timeout: 'VerifierTimeoutError',
  evaluation_lost: 'DownloadVerifierDirError',
  parse_timeout: 'VerifierOutputParseError',
  tests_cannot_start: 'RewardFileNotFoundError',
  parser_failed: 'VerifierOutputParseError',
  no_bash: 'SandboxBuildFailedError',
  no_worktree: 'SandboxBuildFailedError',
  sandbox_refused: 'SandboxBuildFailedError',
  branch_differs: 'HealthcheckError',
  setup_failed: 'HealthcheckError',
  no_agent: 'AgentSetupTimeoutError',
  agent_unfit: 'AgentSetupTimeoutError',
  agent_start: 'AgentSetupTimeoutError',
  no_parser_image: 'AddTestsDirError',
  instance_invalid: 'MissingExtraError',
  artifact_store: 'RuntimeError',
  session_lost: 'RuntimeError',
  lost: 'RuntimeError',
  bug: 'RuntimeError',
};

/** Exceptions by exit status, for agents whose work is graded. Harbor has no exception for a limit of turns or unreadable answers. */
const OF_EXIT: Readonly<Partial<Record<ExitStatus, string>>> = {
  time_limit: 'AgentTimeoutError',
  context_limit: 'ContextLengthExceededError',
  agent_error: 'NonZeroAgentExitCodeError',
};

export type Raised = { type: string; message: string };

/** Returns the exception that Harbor would record for the rollout, or null if Harbor would record none. */
export function exceptionOf({
  failure,
  exit_status,
  facts,
}: Pick<OutputLine, 'failure' | 'exit_status' | 'facts'>): Raised | null {
  // A file from a newer version may have a class that this version does not know.
  if (failure) {
    const type = OF_FAILURE[failure.class] ?? 'RuntimeError';
    return { type, message: `${failure.class}: ${failure.message}` };
  }
  const type = exit_status === null ? undefined : OF_EXIT[exit_status];
  if (type !== undefined) return { type, message: `the rollout ended as ${exit_status}` };
  return facts?.cut_by_token_limit
    ? { type: 'OutputLengthExceededError', message: 'the token limit cut the last answer' }
    : null;
}
