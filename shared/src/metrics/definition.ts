/** The definition of a metric as data: code, documentation, rules and dashboards are made from it. */

export type MetricDefinition = {
  /** As Prometheus sees it: `_total` for counters, the unit where there is one. */
  readonly name: `swefarm_${string}`;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Each has few values: never an instance, rollout or run id. The scraper adds `node`. */
  readonly labels: readonly string[];
  readonly unit: string;
  /** One line: what it says, and over what. */
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

/** Labels of a definition as a union of names. */
export type LabelOf<D extends MetricDefinition> = D['labels'][number];
