/** Defines the transport that the caller passes to the turn client. */
import { withoutSlash } from '@swefarm/shared';
import type { AnswerSink } from './stream.ts';

/** Piece of a JSON body, as text or as UTF-8 bytes. */
export type BodyPiece = string | Buffer;

export type Route = 'chat' | 'completions' | 'tokenize' | 'detokenize';

/**
 * Posts a body and returns the bytes of the answer, or no bytes if an event stream was passed to `sink`.
 *
 * @throws ContextOverflowError if prompt and answer exceed the context; for other refusals an error whose cause is an APIError
 */
export type Post = (route: Route, body: BodyPiece[], sink?: AnswerSink) => Promise<Buffer>;

/** Returns the URL of a route. vLLM serves /tokenize and /detokenize outside of /v1. */
export function routeUrl(base: string, route: Route): string {
  const root = withoutSlash(base);
  if (route === 'chat') return `${root}/chat/completions`;
  if (route === 'completions') return `${root}/completions`;
  return `${rootOf(base)}/${route}`;
}

/** vLLM and SGLang serve /metrics outside of /v1. */
export const metricsUrl = (base: string): string => `${rootOf(base)}/metrics`;

const rootOf = (base: string): string => withoutSlash(base).replace(/\/v1$/, '');

export const modelsUrl = (base: string): string => `${withoutSlash(base)}/models`;
