/** The row of the training dashboard that tells what rollouts cost, where their runs have prices. */
import { OUTCOME_METRICS as O } from '@swefarm/shared';
import { promql, TRAINING_VARIABLES, WINDOW } from './promql.ts';
import type { DashboardSpec } from './spec.ts';

const { rate, increase, share } = promql(TRAINING_VARIABLES);

export const COST: DashboardSpec['rows'][number] = {
  title: 'Cost, where runs have prices',
  panels: [
    {
      key: 'cost',
      title: 'Cost by model',
      kind: 'timeseries',
      unit: 'currencyUSD',
      stacked: true,
      queries: [{ expr: increase(O.cost, WINDOW, ['model']), legend: '{{model}}' }],
      about:
        'US dollars of the rollouts committed within the window, by the price that each run began with. Attempts that failed before the committed one are not in it.',
      todo: 'Nothing here: give `--prices FILE` to the command that submits, or to `swefarm serve`.',
      next: ['training/cost-each', 'training/tokens'],
    },
    {
      key: 'cost-each',
      title: 'Cost of a rollout and of a success',
      kind: 'timeseries',
      unit: 'currencyUSD',
      queries: [
        {
          expr: share(rate(O.cost, WINDOW, ['model']), rate(O.priced, WINDOW, ['model'])),
          legend: '{{model}}, a rollout',
        },
        {
          expr: share(rate(O.cost, WINDOW, ['model']), rate(O.pricedResolved, WINDOW, ['model'])),
          legend: '{{model}}, a success',
        },
      ],
      about: 'Mean cost in US dollars; the cost of all rollouts divided by those that resolved.',
      todo: 'A success that gets dearer while a rollout does not: the resolve rate falls. Both rise: longer conversations, look at turns.',
      next: ['training/turns', 'training/resolve-rate'],
    },
  ],
};
