/**
 * A stand-in for KEDA: follows a rendered ScaledObject by KEDA's documentation (keda.sh, "Scaling deployments" and the Prometheus
 * scaler), queries a real Prometheus, and scales the real Deployment. Without an answer it does nothing, like KEDA without a fallback.
 */

import type { Resource } from '../../helm/render.ts';
import type { Prometheus } from '../../src/launchers/prometheus.ts';
import type { Cluster } from './cluster.ts';

type Trigger = {
  type: string;
  name: string;
  metadata: { query: string; threshold: string; activationThreshold?: string; ignoreNullValues?: string };
};
export type Request = { replicas: number; at: number; why: string };

export type Scaler = {
  /** Queries once and scales. Returns the number of pods, or null when a trigger got no answer. */
  look(): Promise<number | null>;
  /** All changes of the number of pods. */
  readonly requests: readonly Request[];
};

export function standInScaler(object: Resource, { kubectl }: Cluster, prometheus: Prometheus): Scaler {
  const { minReplicaCount, maxReplicaCount, cooldownPeriod, scaleTargetRef, triggers } = object.spec;
  const requests: Request[] = [];
  /** Wanted numbers within the cooldown period, during which a smaller number does not take effect. */
  let recent: { at: number; replicas: number }[] = [];
  return {
    requests,
    async look() {
      const answers = await Promise.all((triggers as Trigger[]).map((one) => ask(prometheus, one)));
      if (answers.some((one) => one === null)) return null;
      const found = answers.filter((one) => one !== null);
      const active = found.some(({ value, activation }) => value > activation);
      const needed = Math.max(...found.map(({ value, threshold }) => Math.ceil(value / threshold)));
      // KEDA scales between 0 and 1; the HPA that it creates scales above 1.
      const wanted = active
        ? Math.min(maxReplicaCount, Math.max(1, minReplicaCount, needed))
        : minReplicaCount;
      const now = Date.now();
      recent = [
        ...recent.filter(({ at }) => now - at < cooldownPeriod * 1000),
        { at: now, replicas: wanted },
      ];
      const replicas = Math.max(...recent.map((one) => one.replicas));
      if (requests.at(-1)?.replicas !== replicas) {
        const why = found.map(({ name, value }) => `${name} ${value}`).join(', ');
        requests.push({ replicas, at: now, why });
        await kubectl('scale', `deployment/${scaleTargetRef.name}`, `--replicas=${replicas}`);
      }
      return replicas;
    },
  };
}

async function ask(prometheus: Prometheus, { name, metadata }: Trigger) {
  const samples = await prometheus.query(metadata.query);
  if (samples.length > 1)
    throw new Error(`the query of ${name} gives ${samples.length} numbers, and not one`);
  const [sample] = samples;
  if (!sample && metadata.ignoreNullValues === 'false') return null;
  return {
    name,
    value: Number(sample?.value[1] ?? 0),
    threshold: Number(metadata.threshold),
    activation: Number(metadata.activationThreshold ?? 0),
  };
}
