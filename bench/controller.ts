/**
 * Measures admission by load on simulated engines (controller/engines.ts): a step without admission, with the farm's controller, and with the
 * best of many fixed limits. A real farm does not know the best limit beforehand. All clocks are simulated.
 */
import { ENGINES } from './controller/engines.ts';
import { drawRollouts, type Mode, type Simulated, simulate } from './controller/simulate.ts';
import { table } from './print.ts';
import { median, rounded } from './statistics.ts';

export type ControllerSize = { rollouts: readonly number[]; fixed: readonly number[] };

type Row = {
  engine: keyof typeof ENGINES;
  rollouts: number;
  /** Medians over the draws. Each ratio compares two steps of the same draw. */
  off_seconds: number;
  auto_seconds: number;
  best_limit: number;
  /** `auto_of_off`, `prefilled`, `preempted`: time and tokens, relative to no admission. `auto_of_best`: time, relative to the best limit. */
  auto_of_off: number[];
  prefilled: number;
  preempted: number;
  auto_of_best: number[];
};
export type ControllerPart = { draws: number; rows: Row[] };

export function measureController({ rollouts, fixed }: ControllerSize, draws: number): ControllerPart {
  const names = Object.keys(ENGINES) as (keyof typeof ENGINES)[];
  const rows = rollouts.flatMap((count) => names.map((engine) => measureRow(engine, count, fixed, draws)));
  return { draws, rows };
}

function measureRow(
  engine: keyof typeof ENGINES,
  count: number,
  fixed: readonly number[],
  draws: number,
): Row {
  const play = (mode: Mode): Simulated[] =>
    Array.from({ length: draws }, (_, at) => simulate(ENGINES[engine], drawRollouts(count, at + 1), mode));
  const [off, auto] = [play('off'), play('auto')];
  const limited = fixed.map((limit) => ({ limit, steps: play(limit) }));
  const timeOf = (steps: readonly Simulated[]): number => median(steps.map(({ seconds }) => seconds));
  const best = limited.reduce((one, other) => (timeOf(other.steps) < timeOf(one.steps) ? other : one));
  const ratios = (key: 'seconds' | 'prefilled_tokens' | 'preempted_tokens', to: readonly Simulated[]) =>
    auto.map((step, at) => rounded(step[key] / (to[at]?.[key] || Number.NaN), 2));
  console.error(`  ${count} rollouts on ${engine}: ${ratios('seconds', off).join(', ')} of the time`);
  return {
    ...{ engine, rollouts: count, best_limit: best.limit },
    off_seconds: rounded(timeOf(off), 0),
    auto_seconds: rounded(timeOf(auto), 0),
    auto_of_off: ratios('seconds', off),
    prefilled: median(ratios('prefilled_tokens', off)),
    preempted: median(ratios('preempted_tokens', off)),
    auto_of_best: ratios('seconds', best.steps),
  };
}

export function printController({ draws, rows }: ControllerPart): string {
  const head = ['engine', 'rollouts', 'off s', 'auto s', 'auto/off', 'prefilled', 'preempted', 'best N'];
  const range = (values: readonly number[]): string => `${Math.min(...values)}-${Math.max(...values)}`;
  const lines = rows.map((row) => [
    ...[row.engine, row.rollouts, row.off_seconds, row.auto_seconds, range(row.auto_of_off)],
    ...[row.prefilled, row.preempted, row.best_limit, range(row.auto_of_best)],
  ]);
  return [
    `Admission by load on engines of foreign constants, ${draws} draws; auto/off and auto/N: lowest and highest`,
    table([[...head, 'auto/N'], ...lines]),
  ].join('\n');
}
