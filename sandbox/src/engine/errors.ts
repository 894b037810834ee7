/** Maps an engine's error to a failure class. */
import { errorMessage, type FailureClass, RolloutFailure } from '@swefarm/shared';

const UNREACHABLE = /ECONNREFUSED|ENOENT|EACCES|EPERM|ECONNRESET|EPIPE|ETIMEDOUT|socket hang up/;
type Words = readonly [RegExp, FailureClass][];
const NODE_WORDS: Words = [
  [/no space left on device|disk quota exceeded/i, 'node_disk'],
  [/cannot allocate memory|out of memory/i, 'node_memory'],
];
const WORDS: Words = [
  ...NODE_WORDS,
  // The name has the format of another runtime, such as dir:/path.
  [/invalid reference format/i, 'image_not_found'],
  [
    /executable file not found|exec: "[^"]*": (stat|no such file)|no such file or directory: unknown/i,
    'no_bash',
  ],
];
const UNKNOWN_IMAGE =
  /no such image|manifest( for .*)? (not found|unknown)|repository .* (not found|does not exist)|pull access denied|name unknown/i;

/** Podman answers 500 if a container is removed during the request. */
const REMOVED_MEANWHILE = /does not exist in database: no such container/;

export function statusCode(error: unknown): number | null {
  const code = (error as { statusCode?: unknown } | null)?.statusCode;
  if (code === 500 && REMOVED_MEANWHILE.test(errorMessage(error))) return 404;
  return typeof code === 'number' ? code : null;
}

/** Wraps an engine error; `otherwise` is the class when no rule matches. RolloutFailures and aborts pass unchanged. */
export function engineFailure(
  error: unknown,
  otherwise: FailureClass,
  doing: string,
  words: Words = WORDS,
): unknown {
  if (error instanceof RolloutFailure || (error instanceof Error && error.name === 'AbortError'))
    return error;
  const message = errorMessage(error);
  const code = (error as { code?: unknown } | null)?.code;
  const text = `${typeof code === 'string' ? code : ''} ${message}`;
  let failureClass = otherwise;
  const known = words.find(([pattern]) => pattern.test(text));
  if (known) failureClass = known[1];
  else if (statusCode(error) === null && UNREACHABLE.test(text)) failureClass = 'engine_unreachable';
  return new RolloutFailure(failureClass, `${doing}: ${message.trim()}`.slice(0, 400), { cause: error });
}

/**
 * Wraps the error of reading or writing files of a container. The message may contain file names that code in the container chose, so its
 * words select only `node_disk` and `node_memory`, for which other evidence decides whether the code is the cause.
 */
export const fileFailure = (
  error: unknown,
  doing: string,
  otherwise: FailureClass = 'sandbox_lost',
): unknown => engineFailure(error, otherwise, doing, NODE_WORDS);

/** Error messages about limits that the kernel or the engine refuses; some have status 500. */
const REFUSED =
  /error setting cgroup config|cfs quota|memory limit|limit.*(?:too low|too small)|cannot unmarshal number|invalid argument.*(?:cgroup|\.max)/i;
const PASSING = new Set([404, 408, 409, 429]);

/** Maps the error of a create or start. A refusal is the run's fault, unless the message has another class. */
export function createFailure(error: unknown, created: boolean, doing: string): unknown {
  const status = statusCode(error);
  if (status === 404 && !created) return engineFailure(error, 'image_not_found', doing);
  const isRefused =
    (status !== null && status >= 400 && status < 500 && !PASSING.has(status)) ||
    (status !== null && REFUSED.test(errorMessage(error)));
  return engineFailure(error, isRefused ? 'sandbox_refused' : 'sandbox_start', doing);
}

export function pullFailure(error: unknown, image: string): unknown {
  if (UNKNOWN_IMAGE.test(errorMessage(error)) || statusCode(error) === 404) {
    const message = `image ${image}: ${errorMessage(error).trim()}`.slice(0, 400);
    return new RolloutFailure('image_not_found', message, { cause: error });
  }
  return engineFailure(error, 'image_pull', `pulling ${image}`);
}
