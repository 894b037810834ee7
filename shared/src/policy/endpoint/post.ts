/** The one thing the wire code asks of its user: to send a body and bring the answer's bytes. */
import { withoutSlash } from '../../records/policy.ts';
import type { AnswerSink } from './stream.ts';

/** A piece of a JSON body; ids come as bytes. */
export type BodyPiece = string | Buffer;

export type Route = 'chat' | 'completions' | 'tokenize' | 'detokenize';

/**
 * Brings the answer's bytes. Of an event stream a transport may hand them to `sink` as they come, and then brings none; what
 * it brings whole is read the same. Throws OverflowSignal when the endpoint says that prompt and answer do not fit, else whatever
 * the user's transport throws for anything but HTTP 200.
 */
export type Post = (route: Route, body: BodyPiece[], sink?: AnswerSink) => Promise<Buffer>;

/** Where a route lies. vLLM's tokenizer routes stand beside /v1, not below it. */
export function routeUrl(base: string, route: Route): string {
  const root = withoutSlash(base);
  if (route === 'chat') return `${root}/chat/completions`;
  if (route === 'completions') return `${root}/completions`;
  return `${root.replace(/\/v1$/, '')}/${route}`;
}

export const modelsUrl = (base: string): string => `${withoutSlash(base)}/models`;
