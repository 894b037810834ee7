/** What the turn client needs from its caller: a function that posts a body and returns the bytes of the answer. */
import { withoutSlash } from '@swefarm/shared';
import type { AnswerSink } from './stream.ts';

/** A piece of a JSON body; ids come as bytes. */
export type BodyPiece = string | Buffer;

export type Route = 'chat' | 'completions' | 'tokenize' | 'detokenize';

/**
 * Returns the answer's bytes. It may pass the bytes of an event stream to `sink` as they arrive; the result is then empty.
 * Throws ContextOverflowError when the endpoint reports that prompt and answer do not fit, else whatever
 * the caller's transport throws for anything but HTTP 200; a refusal has an APIError as its cause.
 */
export type Post = (route: Route, body: BodyPiece[], sink?: AnswerSink) => Promise<Buffer>;

/** The URL of a route. vLLM's tokenizer routes are beside /v1, not below it. */
export function routeUrl(base: string, route: Route): string {
  const root = withoutSlash(base);
  if (route === 'chat') return `${root}/chat/completions`;
  if (route === 'completions') return `${root}/completions`;
  return `${root.replace(/\/v1$/, '')}/${route}`;
}

export const modelsUrl = (base: string): string => `${withoutSlash(base)}/models`;
