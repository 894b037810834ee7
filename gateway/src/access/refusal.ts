/** Refusals of the gateway in one JSON form: code, message, and the field that is wrong. */
import { errorMessage, type Log, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';

export const RefusalBody = z.object({
  error: z.object({
    code: z.string().meta({ description: 'stable, for scripts' }),
    message: z.string(),
    field: z
      .string()
      .exactOptional()
      .meta({ description: 'path into the body, name of a parameter or header, or `body`' }),
  }),
});
export type RefusalBody = z.infer<typeof RefusalBody>;

/** Error of a request that is wrong or not allowed, or that the gateway cannot serve now (429, 503) or at all (501). */
export class Refusal extends SwefarmError {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { field?: string; cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(code, message, { cause: options.cause, retryable: status >= 500 });
    this.status = status;
    this.field = options.field;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Returns the answer to any error. `bodyLimit` is in bytes. */
export function refusalOf(error: unknown, bodyLimit?: number): { status: number; body: RefusalBody } {
  if (hasZodFastifySchemaValidationErrors(error)) {
    const { field, message } = problemOf(error.validation, error.validationContext ?? 'request');
    return answerWith(400, 'bad_request', `${field}: ${message}`, field);
  }
  if (error instanceof Refusal) return answerWith(error.status, error.code, error.message, error.field);
  if (error instanceof UsageError) return answerWith(400, error.code, error.message);
  if (error instanceof UnusableError) return answerWith(503, error.code, error.message);
  if (error instanceof SwefarmError && error.code in NOT_FOUND) {
    return answerWith(404, error.code, error.message, NOT_FOUND[error.code]);
  }
  if (error instanceof SwefarmError && error.retryable) return answerWith(503, error.code, error.message);
  if (error instanceof SwefarmError && UNREADABLE.has(error.code))
    return answerWith(500, error.code, error.message);
  const { statusCode, code } = error as Partial<FastifyError>;
  if (statusCode !== undefined && statusCode < 500) {
    const [name, field, message] = FRAMEWORK[code ?? ''] ?? ['bad_request', undefined, errorMessage(error)];
    const limit = name === 'too_large' && bodyLimit !== undefined ? ` (${bodyLimit} bytes): ${SMALLER}` : '';
    return answerWith(statusCode, name, `${message}${limit}`.slice(0, 400), field);
  }
  return answerWith(500, 'bug', 'an unexpected error; the log of the gateway has it');
}

/** Error codes answered as 404, with the field of the request that names the missing object. */
const NOT_FOUND: Record<string, string> = {
  bad_rollout_id: 'rollout',
  run_unknown: 'run',
  artifact_missing: 'rollout',
};

/** Error codes of unreadable records in Redis, answered as 500. */
const UNREADABLE = new Set([
  'result_unreadable',
  'run_unreadable',
  'run_newer',
  'instance_unreadable',
  'instance_newer',
]);

const SMALLER =
  'post fewer rows at once, omit columns that the farm does not read, or have the operator raise it';

/** Fastify's error codes and the answers to them. */
const FRAMEWORK: Record<string, [code: string, field: string, message: string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['too_large', 'body', 'body: larger than gateway_body_bytes allows'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'bad_request',
    'content-type',
    'content-type: expected application/json (curl: -H "content-type: application/json")',
  ],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['bad_request', 'body', 'body: expected JSON, found nothing'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['bad_request', 'body', 'body: expected JSON, found something else'],
};

const WATCHED = 'it needs a process that reads results while they arrive: swefarm submit --output FILE';

/** Options of `swefarm collect` that a submitted run does not have, each with an alternative. */
const COLLECTION: Readonly<Record<string, string>> = {
  sets: 'submit a run for each set, with its settings under run',
  longest_first:
    'run.order is longest; for an order of your own set it to given, and send instances in that order',
  max_rollouts: 'group_size is the number of rollouts of an instance',
  until_resolved: WATCHED,
  budget_tokens: WATCHED,
  budget_cost: WATCHED,
  budget_seconds: WATCHED,
  in_flight: WATCHED,
  prices:
    'the operator gives prices to the gateway (prices); swefarm collect --prices FILE writes costs by your file',
};

function problemOf(
  problems: readonly { instancePath: string; keyword: string; message?: string; params?: unknown }[],
  where: string,
): { field: string; message: string } {
  const [first] = problems;
  const path = first?.instancePath.split('/').filter(Boolean) ?? [];
  const keys = (first?.params as { keys?: string[] } | undefined)?.keys;
  if (first?.keyword === 'unrecognized_keys' && keys?.[0] !== undefined) {
    const remedy = COLLECTION[keys[0]];
    const message = remedy === undefined ? 'unknown field' : `not a setting of one run; ${remedy}`;
    return { field: [...path, keys[0]].join('.'), message };
  }
  const message = (first?.message ?? 'cannot be read')
    .replace(/^Invalid input: /, '')
    .replace('received undefined', 'found nothing')
    .replace(/\breceived\b/, 'found');
  return { field: path.join('.') || where, message };
}

/**
 * Turns a UsageError about settings of a run into a Refusal 422 with the field that the error names; returns other errors unchanged.
 *
 * @param policy paths of the request's fields that contain the URL and the model of the policy
 */
export function settingsRefusal(
  error: unknown,
  prefix: string,
  policy: { url: string; model: string },
): unknown {
  if (!(error instanceof UsageError)) return error;
  const { message } = error;
  const refuse = (field: string, text: string): Refusal =>
    new Refusal(422, 'bad_settings', text, { field, cause: error });
  if (/add --(policy-url|model)/.test(message)) {
    const field = /add --policy-url/.test(message) ? policy.url : policy.model;
    return refuse(field, `${field}: expected one here, with the caller in gateway_callers, or with serve`);
  }
  const [, unknown, known, count] =
    /\bunknown key ([\w.]+)|(^kind|\b(?:policy|agent|sandbox|evaluation|until)\.[a-z_.]+)|\((group_size|oversample|refills|min_group|ttl|deadline_at|max_staleness|infra_pause_share|order)\)/.exec(
      message,
    ) ?? [];
  const named = unknown ?? known ?? count;
  return refuse(named === undefined ? prefix.slice(0, -1) || 'body' : `${prefix}${named}`, message);
}

const IN_RUN = { url: 'run.policy.urls', model: 'run.policy.model' };

/** {@link settingsRefusal} for settings in the field `run` of a request. */
export const runRefusal = (error: unknown): unknown => settingsRefusal(error, 'run.', IN_RUN);

/** Reads settings in the field `run` of a request. Throws the errors of {@link runRefusal}. */
export function namingFields<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw runRefusal(error);
  }
}

const answerWith = (status: number, code: string, message: string, field?: string) => ({
  status,
  body: { error: { code, message, ...(field === undefined ? {} : { field }) } },
});

export const answerErrors =
  (log: Log) =>
  async (error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { status, body } = refusalOf(error, request.routeOptions.bodyLimit);
    const context = { method: request.method, url: request.url, status, code: body.error.code };
    if (status === 500) log.error({ ...context, err: error }, 'request failed with an unexpected error');
    else log.info({ ...context, reason: body.error.message }, 'request refused');
    if (error instanceof Refusal && error.retryAfterSeconds !== undefined) {
      reply.header('retry-after', error.retryAfterSeconds);
    }
    await reply.code(status).send(body);
  };
