/** Creates prom-client objects from the metric definitions. */
import { type Definitions, type LabelOf, type MetricDefinition, WORKER_METRICS } from '@swefarm/shared';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

type Collector<D extends MetricDefinition> = D['type'] extends 'counter'
  ? Counter<LabelOf<D>>
  : D['type'] extends 'gauge'
    ? Gauge<LabelOf<D>>
    : Histogram<LabelOf<D>>;

type Collectors<Ds extends Definitions> = { readonly [K in keyof Ds]: Collector<Ds[K]> };

function collector(definition: MetricDefinition, registry: Registry): Counter | Gauge | Histogram {
  const { name, help, labels, buckets } = definition;
  const settings = { name, help, labelNames: [...labels], registers: [registry] };
  if (definition.type === 'counter') return new Counter(settings);
  if (definition.type === 'gauge') return new Gauge(settings);
  return new Histogram({ ...settings, ...(buckets ? { buckets: [...buckets] } : {}) });
}

function collectorsOf<Ds extends Definitions>(definitions: Ds, registry: Registry): Collectors<Ds> {
  const entries = Object.entries(definitions).map(([key, one]) => [key, collector(one, registry)]);
  return Object.fromEntries(entries) as Collectors<Ds>;
}

export type WorkerMetrics = ReturnType<typeof createWorkerMetrics>;

/** Creates a registry with the metrics of the worker and the default metrics of Node. */
export function createWorkerMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return { registry, ...collectorsOf(WORKER_METRICS, registry) };
}
