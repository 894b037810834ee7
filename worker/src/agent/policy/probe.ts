/** Requests an endpoint's list of models: whether this node can reach it, and whether it speaks the protocol. */
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
    // Without a key a 401 still proves that a server listens; the key travels with the run, not with the node.
    if (status === 401 || status === 403)
      return { ok: true, detail: `reachable, wants a key (HTTP ${status})` };
    return { ok: false, detail: status === undefined ? errorMessage(error) : `HTTP ${status} at ${url}` };
  }
}
