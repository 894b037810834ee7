/** Errors of registries, with their remedies, and the failure class of each. */
import { errorMessage, RolloutFailure, withoutMiddle } from '@swefarm/shared';
import { z } from 'zod';

/** An answer that is no success. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** The content of a blob or manifest differs from its digest. A retry at the same registry would return the same content. */
export class DigestError extends Error {
  override readonly name = 'DigestError';
}

const Body = z.object({
  errors: z.array(z.object({ code: z.string().optional(), message: z.string().optional() })),
});

const REMEDIES: Readonly<Record<number, string>> = {
  401: 'name a file with credentials in registry_auth; Docker Hub also answers so for an unknown repository',
  403: 'the credentials of registry_auth do not allow to pull it',
  404: 'check the name and the tag',
};

/**
 * Describes an answer that is no success: the status, the messages of the body, the wait that `Retry-After` requests, the remedy.
 * @param doing what was requested, such as `manifest latest of a/b at registry.example`
 */
export function answerError(
  doing: string,
  status: number,
  retryAfter: string | undefined,
  body: string,
): RegistryError {
  const errors = Body.safeParse(parsed(body)).data?.errors ?? [];
  const why = errors.map(({ code, message }) => message || code).filter(Boolean);
  const seconds = retryAfter === undefined ? null : secondsOf(retryAfter);
  const parts = [
    `${doing}: the registry answered ${status}`,
    ...why,
    ...(seconds === null ? [] : [`Retry-After: ${seconds}`]),
    ...(REMEDIES[status] ? [REMEDIES[status]] : []),
  ];
  return new RegistryError(status, withoutMiddle(parts.join('; '), 390));
}

/** Reads `Retry-After`: seconds, or a date. Returns null for other text. */
function secondsOf(retryAfter: string): number | null {
  if (/^\d+$/.test(retryAfter.trim())) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/** Returns whether a retry may succeed at once: the connection failed, or the registry has a fault. 429 needs a longer wait. */
export function isPassing(error: unknown): boolean {
  if (error instanceof RegistryError) return error.statusCode >= 500 || error.statusCode === 408;
  if (error instanceof DigestError || error instanceof RolloutFailure) return false;
  return CONNECTION.test(codeOf(error));
}

const CONNECTION =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_(SOCKET|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT|RES_CONTENT_LENGTH_MISMATCH)|HPE_.*)$/;

/** Returns the code of an error or of its cause. */
export function codeOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  return cause === undefined ? '' : codeOf(cause);
}

/** Maps an error of a pull to a RolloutFailure: image_not_found, node_disk or image_pull. Failures and aborts pass unchanged. */
export function pullFailure(error: unknown, image: string): unknown {
  if (error instanceof RolloutFailure || (error instanceof Error && error.name === 'AbortError'))
    return error;
  const remedy = /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|UND_ERR_CONNECT_TIMEOUT)$/.test(codeOf(error))
    ? '; if this node reaches no registry, set HTTPS_PROXY or image_mirrors'
    : '';
  const message = `${withoutMiddle(`pulling ${image}: ${errorMessage(error)}`, 320)}${remedy}`;
  const isMissing = error instanceof RegistryError && error.statusCode === 404;
  const isFull = /^(ENOSPC|EDQUOT)$/.test(codeOf(error));
  const failureClass = isMissing ? 'image_not_found' : isFull ? 'node_disk' : 'image_pull';
  return new RolloutFailure(failureClass, message, { cause: error });
}
