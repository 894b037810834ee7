import { probeTokens, type TokenFinding, type TokenProbeOptions } from './tokenprobe.ts';

/**
 * Probes every endpoint of a run and never throws for faults of an endpoint. An endpoint at which no answer begins a tool call gets a
 * warning; if all endpoints of the run are `silent` in this way, all of them fail.
 */
export async function probeEndpoints(
  urls: readonly string[],
  options: TokenProbeOptions,
): Promise<{ url: string; found: Omit<TokenFinding, 'silent'>[] }[]> {
  const probed = await Promise.all(
    urls.map(async (url) => ({ url, found: await probeTokens(url, options) })),
  );
  const noneCalls = probed.every(({ found }) => found.some(({ silent }) => silent));
  return probed.map(({ url, found }) => ({
    url,
    found: found.map(({ silent, ...finding }) =>
      silent && noneCalls ? { ...finding, status: 'fail' as const } : finding,
    ),
  }));
}
