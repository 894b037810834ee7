/** Schemas of documented routes and of their refusals. */
import type { z } from 'zod';
import { RefusalBody } from '../access/refusal.ts';

const REASONS = {
  400: 'The request has the wrong form.',
  401: 'The request has no token, or an unknown one.',
  403: 'This caller may not do that.',
  404: 'The named object does not exist.',
  409: 'Another object has this name.',
  410: 'The answer has expired.',
  413: 'The body is larger than gateway_body_bytes allows.',
  415: 'The body is not application/json.',
  422: 'The rows, settings or sizes are not accepted.',
  429: 'The caller is over a quota; the header retry-after is in seconds.',
  500: 'A record in Redis is unreadable, or an unexpected error; see the log of the gateway.',
  501: 'This gateway does not implement the route.',
  503: 'Retry later: Redis or a store is away, or a run is full.',
} as const;

type Status = keyof typeof REASONS;
type RequestSchemas = { params?: z.ZodType; querystring?: z.ZodType; body?: z.ZodType; security?: [] };

/** Status codes of refusals on routes with a body. */
export const OF_BODY = [400, 413, 415] as const;

/** Returns response schemas of the refusals `statuses`, and of 401, 429, 500 and 503, which all routes have. */
export const refusals = (...statuses: Status[]) =>
  Object.fromEntries(
    ([...statuses, 401, 429, 500, 503] as const).map((status) => [
      status,
      { description: REASONS[status], content: { 'application/json': { schema: RefusalBody } } },
    ]),
  );

/**
 * Returns the options of a route below `/v1/`. Besides `statuses`, the document lists the refusals of all routes, and those of bad
 * requests if the route has parameters, a query or a body.
 */
export function documented<Answer extends z.ZodType, Request extends RequestSchemas>(
  summary: string,
  answer: Answer,
  request: Request,
  ...statuses: Status[]
) {
  const bad = request.body ? OF_BODY : (request.params ?? request.querystring) ? [OF_BODY[0]] : [];
  const response: { 200: Answer } = { 200: answer, ...refusals(...bad, ...statuses) };
  return { schema: { ...request, summary, response } };
}
