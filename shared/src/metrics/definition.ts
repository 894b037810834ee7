export type MetricDefinition = {
  /** The name in Prometheus, with its unit, and `_total` for counters. */
  readonly name: `swefarm_${string}`;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Labels with few values: no instance, rollout or run. The scraper adds `node`. */
  readonly labels: readonly string[];
  readonly unit: 'count' | 'seconds' | 'bytes';
  readonly help: string;
  /** Upper bounds of a histogram, without +Inf. */
  readonly buckets?: readonly number[];
};

export type Definitions = Readonly<Record<string, MetricDefinition>>;

/** Returns a function that defines metrics of this type and unit. @param first labels of all these metrics */
export const metricsOf =
  <Type extends MetricDefinition['type'], First extends string = never>(
    type: Type,
    unit: MetricDefinition['unit'],
    ...first: First[]
  ) =>
  <Label extends string = never>(name: MetricDefinition['name'], help: string, ...labels: Label[]) => ({
    name,
    type,
    unit,
    help,
    labels: [...first, ...labels] as readonly (First | Label)[],
  });

/** One value with its labels. A histogram has a count for each bound and for +Inf, not cumulative. */
export type Point<Label extends string = string> = {
  readonly labels: Readonly<Record<Label, string>>;
  readonly value: number | { readonly buckets: readonly number[]; readonly sum: number };
};

export type LabelOf<D extends MetricDefinition> = D['labels'][number];
