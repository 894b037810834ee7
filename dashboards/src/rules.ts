/** Recording rules for ratios, so that alerts and people use the same ones. */
import { OUTCOME_METRICS as O } from '@swefarm/shared';
import { promql } from './promql.ts';

const { rate, increase, share, without } = promql();

export type RecordingRule = { record: string; expr: string };

export const RULES: readonly RecordingRule[] = [
  {
    record: 'swefarm:resolve_rate:ratio30m',
    expr: share(
      rate(O.resolved, '30m', ['kind']),
      without(rate(O.rollouts, '30m', ['kind'], { outcome: 'judged' }), rate(O.scored, '30m', ['kind'])),
    ),
  },
  {
    record: 'swefarm:turns:mean30m',
    expr: share(rate(O.turns, '30m', ['kind'], {}, '_sum'), rate(O.turns, '30m', ['kind'], {}, '_count')),
  },
  {
    record: 'swefarm:infrastructure_failures:ratio5m',
    expr: share(
      rate(O.rollouts, '5m', [], { outcome: 'failed' }),
      rate(O.rollouts, '5m', [], { outcome: '!=cancelled' }),
    ),
  },
  {
    record: 'swefarm:judged:increase30m',
    expr: increase(O.rollouts, '30m', ['kind'], { outcome: 'judged' }),
  },
];
