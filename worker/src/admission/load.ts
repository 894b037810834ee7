/** Reads the load of an endpoint from its metrics: those of vLLM (docs.vllm.ai, usage/metrics) or SGLang (--enable-metrics). */
import { createEndpointClient } from '@swefarm/policy';
import type { EndpointLoad, PolicyKey } from '@swefarm/shared';
import { withoutUser } from '../agent/policy/redact.ts';

const TIMEOUT_MS = 3_000;

/** Names of a metric, the preferred one first. The series of several engines are added; of `kvUsage` the highest counts. */
type Names = Record<'kvUsage' | 'running' | 'waiting' | 'preemptions', readonly string[]>;

const SERVERS: readonly Names[] = [
  {
    // The second name is that of vLLM up to 0.9.
    kvUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    preemptions: ['vllm:num_preemptions_total'],
  },
  {
    kvUsage: ['sglang:token_usage'],
    running: ['sglang:num_running_reqs'],
    waiting: ['sglang:num_queue_reqs'],
    preemptions: ['sglang:num_retracted_requests_total'],
  },
];

/** Returns null if the endpoint does not answer within 3 s or has no metrics of a known server. */
export async function readLoad(url: string, apiKey: PolicyKey | null): Promise<EndpointLoad | null> {
  try {
    const text = await createEndpointClient(url, apiKey).metrics(AbortSignal.timeout(TIMEOUT_MS));
    return parseLoad(text, withoutUser(url));
  } catch {
    return null;
  }
}

/** Parses the text format of Prometheus; null without the metrics of a known server. */
export function parseLoad(text: string, endpoint: string): EndpointLoad | null {
  const series = new Map<string, number[]>();
  for (const [, name = '', value] of text.matchAll(/^((?:vllm|sglang):\w+)(?:\{.*\})? +(\S+)/gm)) {
    const number = Number(value);
    if (Number.isFinite(number)) series.set(name, [...(series.get(name) ?? []), number]);
  }
  for (const names of SERVERS) {
    const valuesOf = (key: keyof Names): number[] =>
      names[key].map((name) => series.get(name) ?? []).find((values) => values.length > 0) ?? [];
    const sumOf = (key: keyof Names): number => valuesOf(key).reduce((sum, value) => sum + value, 0);
    const kvUsage = valuesOf('kvUsage');
    if (kvUsage.length === 0) continue;
    const counts = {
      running: sumOf('running'),
      waiting: sumOf('waiting'),
      preemptions: sumOf('preemptions'),
    };
    return { endpoint, kv_usage: Math.max(...kvUsage), ...counts };
  }
  return null;
}
