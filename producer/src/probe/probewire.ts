/** The probe's requests: they are those of a worker, sent once, with errors that name a remedy. */
import {
  authorizationAt,
  ContextOverflowError,
  type PolicyConfig,
  type PolicyKey,
  type Post,
  parseOverflow,
  parseServedModel,
  type Route,
  refusedSamplingKey,
  routeUrl,
  samplingKeyRemedy,
  UNKNOWN_MODEL,
} from '@swefarm/shared';

export type ProbeTarget = { config: PolicyConfig; apiKey: PolicyKey | null; signal: AbortSignal };

/** Anything but HTTP 200. */
export class ProbeRefused extends Error {
  override readonly name = 'Unanswered';
  readonly route: Route;
  readonly status: number;
  /** What to do, when the answer itself shows it. */
  readonly remedy: string | null;
  /** It does not answer in a stream what was asked. */
  readonly refusesStream: boolean;

  constructor(route: Route, status: number, text: string) {
    super(`/${route}: HTTP ${status}: ${text.slice(0, 200)}`);
    this.route = route;
    this.status = status;
    const refused = status === 400 || status === 422;
    const key = refused ? refusedSamplingKey(text) : null;
    this.remedy = key && samplingKeyRemedy(key);
    this.refusesStream = refused && /\bstream/i.test(text);
  }
}

/** Waits as long as the run would. */
export function postTo(url: string, { config, apiKey, signal }: ProbeTarget): Post {
  return async (route, body) => {
    const address = routeUrl(url, route);
    const response = await fetch(address, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...authorizationAt(apiKey, address) },
      body: Buffer.concat(body.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))),
      signal: AbortSignal.any([signal, AbortSignal.timeout(config.request_timeout * 1000)]),
    });
    if (response.ok) return Buffer.from(await response.arrayBuffer());
    const text = await response.text();
    const overflow = [400, 413, 422].includes(response.status) ? parseOverflow(text) : null;
    if (overflow)
      throw new ContextOverflowError(`/${route}: HTTP ${response.status}: ${text.slice(0, 200)}`, overflow);
    throw new ProbeRefused(route, response.status, text);
  };
}

/** Most tokens of prompt and answer that the server takes; null when it does not say. */
export async function readServedLength(
  url: string,
  { config, apiKey, signal }: ProbeTarget,
): Promise<number | null> {
  const address = `${url.replace(/\/$/, '')}/models`;
  try {
    const response = await fetch(address, {
      redirect: 'manual',
      headers: authorizationAt(apiKey, address),
      signal: AbortSignal.any([signal, AbortSignal.timeout(MODELS_TIMEOUT_MS)]),
    });
    return parseServedModel(await response.json(), config.model).length;
  } catch {
    // Whether the endpoint answers at all is found by the conversations.
    return UNKNOWN_MODEL.length;
  }
}
const MODELS_TIMEOUT_MS = 10_000;
