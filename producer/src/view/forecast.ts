/** Renders the forecast of a run, and afterwards how far it was off. */
import { costOf, type Price, type Result, type RunForecast, type RunRecord } from '@swefarm/shared';
import { duration } from './progress.ts';

/** Renders a forecast in lines for people. */
export function renderForecast({ rollouts, instances, unknown, slots, ...of }: RunForecast): string {
  const lines = [
    `${rollouts} rollouts of ${instances} instances` +
      (unknown > 0
        ? `, ${unknown} without history on this farm (counted as the others of their family)`
        : ''),
    of.seconds
      ? `time on ${slots} slots, if all are free and the policy admits all: ${duration(of.seconds.expected)} (9 in 10 simulated runs: ${duration(of.seconds.low)} to ${duration(of.seconds.high)}); ` +
        `no order is faster than ${duration(of.seconds.ideal)}`
      : `time: unknown, ${slots === 0 ? 'no worker claims rollouts' : 'no rollout of this agent was judged on this farm in 30 days'}`,
    ...(of.tokens ? [tokensOf(of.tokens)] : []),
    ...(of.cost === null ? [] : [`cost: $${of.cost.toFixed(2)}`]),
  ];
  return lines.join('\n');
}

const tokensOf = ({ prompt, completion }: Result['tokens']): string =>
  `tokens: ${amount(prompt)} of prompts, ${amount(completion)} sampled`;

type Ended = Pick<Result, 'tokens' | 'finished_at'>;

/** Compares the forecast of a complete run with its results; null: the run has no forecast, or none of its time. */
export function renderForecastError(
  {
    forecast,
    created_at,
    policy,
  }: Pick<RunRecord, 'forecast' | 'created_at'> & { policy: { price?: Price } | null },
  results: Iterable<Ended>,
): string | null {
  if (!forecast?.seconds || !forecast.tokens) return null;
  const tokens = { prompt: 0, completion: 0 };
  let last = 0;
  for (const result of results) {
    tokens.prompt += result.tokens.prompt;
    tokens.completion += result.tokens.completion;
    last = Math.max(last, result.finished_at);
  }
  const took = Math.max(0, (last - Date.parse(created_at)) / 1000);
  const { expected, low, high } = forecast.seconds;
  const compared = [
    `time ${duration(took)} for ${duration(expected)} (${difference(took, expected)}, ${took >= low && took <= high ? 'within' : 'outside'} its bounds)`,
    `sampled tokens ${amount(tokens.completion)} for ${amount(forecast.tokens.completion)} (${difference(tokens.completion, forecast.tokens.completion)})`,
    ...(forecast.cost === null || !policy?.price
      ? []
      : [`cost $${costOf(tokens, policy.price).toFixed(2)} for $${forecast.cost.toFixed(2)}`]),
  ];
  return `forecast: ${compared.join(', ')}`;
}

function difference(actual: number, expected: number): string {
  if (expected === 0) return 'none expected';
  const percent = Math.round((100 * (actual - expected)) / expected);
  return `${percent >= 0 ? '+' : '−'}${Math.abs(percent)} %`;
}

function amount(count: number): string {
  if (count < 10_000) return String(Math.round(count));
  return count < 1e6 ? `${Math.round(count / 1000)} k` : `${(count / 1e6).toFixed(1)} M`;
}
