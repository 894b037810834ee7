/** PromQL from metric definitions: a renamed or removed metric or label is a type error. */
import { type LabelOf, LIVE_METRICS, type MetricDefinition, OUTCOME_METRICS } from '@swefarm/shared';

/** The time window that the dashboard's viewer chooses. */
export const WINDOW = '$window';
/** The training dashboard can be restricted to kinds of runs. */
export const TRAINING_VARIABLES = { kind: '=~$kind' };

/** Labels that service discovery adds to the series of workers. */
type Attached = 'node' | 'role' | 'runtime';
/** `value`, or with an operator `=~a|b`, `!=x`. */
export type Matchers<D extends MetricDefinition> = { readonly [L in LabelOf<D>]?: string };

/** Metrics of gateways are aggregated differently, because several gateways expose the same sums. */
const OF_GATEWAY: ReadonlySet<MetricDefinition> = new Set([
  ...Object.values<MetricDefinition>(OUTCOME_METRICS),
  ...Object.values<MetricDefinition>(LIVE_METRICS),
]);

/** `variables`: matchers from a dashboard's own variables, added to every metric that has the label. */
export function promql(variables: Readonly<Record<string, string>> = {}) {
  const selector = (
    metric: MetricDefinition,
    matchers: Readonly<Record<string, string | undefined>>,
    suffix = '',
  ) => {
    const labels: readonly string[] = OF_GATEWAY.has(metric) ? metric.labels : [...metric.labels, 'node'];
    const added = Object.entries(variables).filter(([label]) => labels.includes(label) && !matchers[label]);
    const all = [...Object.entries(matchers), ...added].map(([label, value = '']) => {
      const [, operator = '', text = ''] = /^(=~|!~|!=)?(.*)$/.exec(value) ?? [];
      return `${label}${operator || '='}"${text}"`;
    });
    return `${metric.name}${suffix}${all.length > 0 ? `{${all.join(',')}}` : ''}`;
  };
  const once = (metric: MetricDefinition, expression: string): string =>
    OF_GATEWAY.has(metric) ? `max without (instance) (${expression})` : expression;
  const added = (by: readonly string[], expression: string, how = 'sum'): string =>
    by.length > 0 ? `${how} by (${by.join(', ')}) (${expression})` : `${how}(${expression})`;

  return {
    /** Present values of a gauge, added up over all labels that are not in `by`. */
    now: <const D extends MetricDefinition>(
      metric: D,
      by: readonly (LabelOf<D> | Attached)[] = [],
      matchers: Matchers<D> = {},
      how: 'sum' | 'max' | 'min' = 'sum',
    ): string => added(by, once(metric, selector(metric, matchers)), how),
    /** Rate per second over `window`. A histogram needs the `part`. */
    rate: <const D extends MetricDefinition>(
      metric: D,
      window: string,
      by: readonly (LabelOf<D> | Attached | 'le')[] = [],
      matchers: Matchers<D> = {},
      part: '' | '_sum' | '_count' | '_bucket' = '',
    ): string => added(by, once(metric, `rate(${selector(metric, matchers, part)}[${window}])`)),
    /** Increase over `window`. */
    increase: <const D extends MetricDefinition>(
      metric: D,
      window: string,
      by: readonly (LabelOf<D> | Attached)[] = [],
      matchers: Matchers<D> = {},
    ): string => added(by, once(metric, `increase(${selector(metric, matchers)}[${window}])`)),
    /** A quantile of a histogram. */
    quantile: <const D extends MetricDefinition>(
      quantile: number,
      metric: D,
      window: string,
      by: readonly (LabelOf<D> | Attached)[] = [],
      matchers: Matchers<D> = {},
    ): string => {
      const rates = once(metric, `rate(${selector(metric, matchers, '_bucket')}[${window}])`);
      return `histogram_quantile(${quantile}, ${added(['le', ...by], rates)})`;
    },
    /** `whole` without `part`; where nothing tells of `part`, as of a gateway before it was counted, the whole. */
    without: (whole: string, part: string): string => `(${whole} - (${part} or ${whole} * 0))`,
    /** Share of `part` in `whole`; no value where `whole` is zero. */
    share: (part: string, whole: string): string => `${part} / (${whole} > 0)`,
  };
}
