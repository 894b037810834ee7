/** Speeds at which the policy answers the rollouts of a run. They distinguish a slow endpoint from a model that thinks for long. */

export type PolicyPaces = ReturnType<typeof createPolicyPaces>;

const FEWEST_TO_COMPARE = 3;
const MOST_ROLLOUTS = 256;
const MOST_RUNS = 64;

export function createPolicyPaces() {
  const runs = new Map<string, Map<string, number>>();
  return {
    record(runId: string, rolloutId: string, { tokens, seconds }: { tokens: number; seconds: number }): void {
      const rates = runs.get(runId) ?? new Map<string, number>();
      latest(runs, runId, rates, MOST_RUNS);
      latest(rates, rolloutId, seconds > 0 ? tokens / seconds : 0, MOST_ROLLOUTS);
    },
    /**
     * Returns the rollout's tokens per second, as a share of the median of the run's other rollouts on this worker; 0 when it received no
     * tokens, null when there are too few others to compare.
     */
    of(runId: string, rolloutId: string): number | null {
      const rates = runs.get(runId) ?? new Map<string, number>();
      const own = rates.get(rolloutId) ?? 0;
      if (own === 0) return 0;
      const others = [...rates]
        .filter(([id, rate]) => id !== rolloutId && rate > 0)
        .map(([, rate]) => rate)
        .sort((a, b) => a - b);
      if (others.length < FEWEST_TO_COMPARE) return null;
      const middle = others.length >> 1;
      const high = others[middle] ?? 0;
      return own / (others.length % 2 ? high : ((others[middle - 1] ?? 0) + high) / 2);
    },
  };
}

function latest<T>(entries: Map<string, T>, key: string, value: T, most: number): void {
  entries.delete(key);
  entries.set(key, value);
  for (const first of entries.keys()) {
    if (entries.size <= most) return;
    entries.delete(first);
  }
}
