/** The definition of a metric as data, from which code, documentation, rules and dashboards are made. */

export type MetricDefinition = {
  /** The name in Prometheus: `_total` for counters, the unit where there is one. */
  readonly name: `swefarm_${string}`;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Each label has few values: never an instance, rollout or run id. The scraper adds `node`. */
  readonly labels: readonly string[];
  readonly unit: string;
  /** One line: what it measures, and over what. */
  readonly help: string;
  /** Upper bounds of a histogram, without +Inf. */
  readonly buckets?: readonly number[];
};

export type Definitions = Readonly<Record<string, MetricDefinition>>;

/** One value with its labels. A histogram's `buckets` are counts per bucket, not cumulative, one for each bound and +Inf. */
export type Point<Label extends string = string> = {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number | { readonly buckets: readonly number[]; readonly sum: number };
};

/** The label names of a definition as a union. */
export type LabelOf<D extends MetricDefinition> = D['labels'][number];
