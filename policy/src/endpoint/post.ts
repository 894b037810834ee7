/** The transport that the turn client gets from its caller. */
import { withoutSlash } from '@swefarm/shared';
import type { AnswerSink } from './stream.ts';

/** A piece of a JSON body; ids come as bytes. */
export type BodyPiece = string | Buffer;

export type Route = 'chat' | 'completions' | 'tokenize' | 'detokenize';

/**
 * Posts a body and returns the bytes of the answer. The caller may pass the bytes of an event stream to `sink`; the result is
 * then empty.
 *
 * @throws ContextOverflowError when prompt and answer exceed the context, else the caller's error for any status but 200; an
 * APIError is the cause of a refusal
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
