/** The refusals that routes of `/v1` declare beside their own answers. */
import { RefusalBody } from '../access/refusal.ts';

/** Why a route refuses, by the status of the answer. */
const REASONS = {
  400: 'The request has not the form that this route expects.',
  401: 'The request has no token, or one that is not known here.',
  403: 'This caller may not do that.',
  404: 'There is no such thing.',
  409: 'Something else has this name already.',
  410: 'The answer is not stored any more.',
  413: 'The body is larger than gateway_body_bytes allows.',
  415: 'The body is not application/json.',
  422: 'The rows, settings or sizes make no rollout.',
  429: 'The caller is over a quota; the header retry-after has seconds.',
  500: 'A record in Redis cannot be read, or an unexpected error; the log of the gateway has it.',
  501: 'This gateway does not do that.',
  503: 'It may work later: Redis or a store is away, or a run is full.',
} as const;

type Status = keyof typeof REASONS;

/** Any route refuses with these. */
const ALWAYS = [401, 429, 500, 503] as const;
/** A route that reads a body refuses with these. */
export const OF_BODY = [400, 413, 415] as const;

type RefusalResponse = {
  description: string;
  content: { 'application/json': { schema: typeof RefusalBody } };
};

/** The refusals of a route as its response schemas. */
export function refusals<S extends Status = never>(
  ...statuses: S[]
): Record<S | (typeof ALWAYS)[number], RefusalResponse> {
  const responses = [...statuses, ...ALWAYS].map((status) => [
    status,
    { description: REASONS[status], content: { 'application/json': { schema: RefusalBody } } },
  ]);
  return Object.fromEntries(responses);
}
