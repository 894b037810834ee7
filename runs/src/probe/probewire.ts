/** Sends the requests of the probes as a worker does, but without retries. */
import {
  APIError,
  ContextOverflowError,
  createEndpointClient,
  type Post,
  parseOverflow,
  type Route,
  refusedSamplingKey,
  samplingKeyRemedy,
  servedModelIn,
} from '@swefarm/policy';
import type { PolicyConfig, PolicyKey } from '@swefarm/shared';

export type ProbeTarget = { config: PolicyConfig; apiKey: PolicyKey | null; signal: AbortSignal };

/** Thrown when the endpoint answers with an error status, unless the prompt is too long (ContextOverflowError). */
export class ProbeRefused extends Error {
  override readonly name = 'ProbeRefused';
  readonly route: Route;
  readonly status: number;
  /** Remedy if the answer refuses a sampling key that the farm knows; else null. */
  readonly remedy: string | null;
  readonly refusesStream: boolean;

  constructor(route: Route, error: APIError) {
    super(`/${route}: HTTP ${error.message.slice(0, 200)}`, { cause: error });
    this.route = route;
    this.status = error.status ?? 0;
    const refused = error.status === 400 || error.status === 422;
    const key = refused ? refusedSamplingKey(error.message) : null;
    this.remedy = key && samplingKeyRemedy(key);
    this.refusesStream = refused && /\bstream/i.test(error.message);
  }
}

/** Returns a function that sends requests to the endpoint, each with the timeout of the run. */
export function postTo(url: string, { config, apiKey, signal }: ProbeTarget): Post {
  const client = createEndpointClient(url, apiKey, config.headers);
  return async (route, body) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(config.request_timeout * 1000)]);
    return await client.postWhole(route, body, limited).catch((error: unknown) => {
      throw error instanceof APIError && error.status !== undefined ? refusalOf(route, error) : error;
    });
  };
}

function refusalOf(route: Route, error: APIError): Error {
  const { status = 0, message, code } = error;
  const overflow = [400, 413, 422].includes(status) ? parseOverflow(message, code) : null;
  return overflow
    ? new ContextOverflowError(`/${route}: HTTP ${message.slice(0, 200)}`, overflow)
    : new ProbeRefused(route, error);
}

/** Returns the maximum number of tokens of prompt and answer that the server accepts; null when the server does not report it. */
export async function readServedLength(
  url: string,
  { config, apiKey, signal }: ProbeTarget,
): Promise<number | null> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(MODELS_TIMEOUT_MS)]);
  try {
    return servedModelIn(await createEndpointClient(url, apiKey).models(limited), config.model).length;
  } catch {
    // The conversations of the probe report an endpoint that does not answer.
    return null;
  }
}
const MODELS_TIMEOUT_MS = 10_000;
