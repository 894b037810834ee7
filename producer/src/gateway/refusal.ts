/** How the gateway says no: one JSON form with a code for scripts, a line for people, and the field that is wrong. */
import { errorMessage, type Log, SwefarmError, UnusableError, UsageError } from '@swefarm/shared';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';

export type RefusalBody = { error: { code: string; message: string; field?: string } };

/** Thrown by routes for what the caller did wrong, or for what cannot be served now (503). */
export class Refusal extends SwefarmError {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly field: string | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { field?: string; cause?: unknown } = {},
  ) {
    super(code, message, { cause: options.cause, retryable: status >= 500 });
    this.status = status;
    this.field = options.field;
  }
}

/** The answer to anything thrown; what nobody foresaw is logged whole and told in a word. */
export function refusalOf(error: unknown): { status: number; body: RefusalBody } {
  if (hasZodFastifySchemaValidationErrors(error)) {
    const [first] = error.validation;
    const path = first?.instancePath.split('/').filter(Boolean).join('.') ?? '';
    const field = path === '' ? undefined : path;
    return told(
      400,
      'bad_request',
      `${field ?? error.validationContext ?? 'request'}: ${first?.message}`,
      field,
    );
  }
  if (error instanceof Refusal) return told(error.status, error.code, error.message, error.field);
  if (error instanceof UsageError) return told(400, error.code, error.message);
  if (error instanceof UnusableError) return told(503, error.code, error.message);
  if (error instanceof SwefarmError && NOT_FOUND.has(error.code)) return told(404, error.code, error.message);
  if (error instanceof SwefarmError && error.retryable) return told(503, error.code, error.message);
  const { statusCode, code } = error as Partial<FastifyError>;
  if (statusCode !== undefined && statusCode < 500) {
    return told(statusCode, (code ?? 'bad_request').toLowerCase(), errorMessage(error));
  }
  return told(500, 'bug', 'an error nobody foresaw; the log of the gateway has it');
}

const NOT_FOUND = new Set(['bad_rollout_id', 'run_unknown', 'artifact_missing']);

const told = (status: number, code: string, message: string, field?: string) => ({
  status,
  body: { error: { code, message, ...(field === undefined ? {} : { field }) } },
});

export const answerErrors =
  (log: Log) =>
  async (error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { status, body } = refusalOf(error);
    const said = { method: request.method, url: request.url, status, code: body.error.code };
    if (status === 500) log.error({ ...said, err: error }, 'a request failed for a reason nobody foresaw');
    else log.info({ ...said, reason: body.error.message }, 'refused');
    await reply.code(status).send(body);
  };
