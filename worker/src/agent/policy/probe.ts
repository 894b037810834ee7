/** Requests an endpoint's list of models to test whether this node can reach it. */
import { APIError, createEndpointClient } from '@swefarm/policy';
import { errorMessage } from '@swefarm/shared';

const PROBE_TIMEOUT_MS = 10_000;

export type Probe = { ok: boolean; detail: string };

/** Never throws because of the endpoint. `url` is the base, as given to `--policy-url`. */
export async function probeEndpoint(url: string, signal: AbortSignal): Promise<Probe> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
  try {
    const models = await createEndpointClient(url, null).models(limited);
    return { ok: true, detail: `serves ${models.map(({ id }) => id).join(', ')}` };
  } catch (error) {
    const status = error instanceof APIError ? error.status : undefined;
    // A node has no key of a run: a 401 shows that a server listens.
    if (status === 401 || status === 403)
      return { ok: true, detail: `reachable, wants a key (HTTP ${status})` };
    return { ok: false, detail: status === undefined ? errorMessage(error) : `HTTP ${status} at ${url}` };
  }
}
