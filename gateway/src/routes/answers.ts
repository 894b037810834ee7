/** Response schemas of refusals. */
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

/** Status codes of refusals on all routes. */
const ALWAYS = [401, 429, 500, 503] as const;
/** Status codes of refusals on routes with a body. */
export const OF_BODY = [400, 413, 415] as const;

type RefusalResponse = {
  description: string;
  content: { 'application/json': { schema: typeof RefusalBody } };
};

export function refusals<S extends Status = never>(
  ...statuses: S[]
): Record<S | (typeof ALWAYS)[number], RefusalResponse> {
  const responses = [...statuses, ...ALWAYS].map((status) => [
    status,
    { description: REASONS[status], content: { 'application/json': { schema: RefusalBody } } },
  ]);
  return Object.fromEntries(responses);
}
