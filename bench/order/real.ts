/**
 * Real steps on one worker of the runtime `host`, whose agents sleep: one that makes the history, then another twice, in the given order and
 * with the longest expected groups first.
 */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { forecastRun, idealMakespan, requireForecast, submit } from '@swefarm/runs';
import type { Instance } from '@swefarm/shared';
import { printingScript, until } from '@swefarm/testkit';
import { type BenchEnvironment, type BenchWorker, startPolicy, startWorker } from '../farm.ts';
import { PATIENCE } from '../fleet.ts';
import { collect, onceEach } from '../scale/farm.ts';
import { rounded } from '../statistics.ts';
import { drawSteps, named, recordOf } from './steps.ts';

type RealStep = {
  seconds: number;
  ideal_seconds: number;
  over_ideal: number;
  forecast_seconds: number | null;
};
export type RealSteps = {
  rollouts: number;
  slots: number;
  before: RealStep;
  given: RealStep;
  longest: RealStep;
};

type Size = { instances: number; group: number; slots: number; mean_seconds: number };

export async function measureRealSteps(environment: BenchEnvironment, size: Size): Promise<RealSteps> {
  const tree = join(environment.folder, 'tree');
  await mkdir(tree);
  const git = (...line: string[]) => execFileSync('git', ['-C', tree, ...line]);
  git('init', '-q');
  git('-c', 'user.name=b', '-c', 'user.email=b@b', 'commit', '-q', '--allow-empty', '-m', 'base');
  await using worker = await startWorker(environment, 'host', size.slots);
  const drawn = drawSteps(1, size);
  const all = drawn.flatMap(({ first }) => first);
  const scale = size.mean_seconds / (all.reduce((sum, one) => sum + one, 0) / all.length);
  const graded = { eval_script: printingScript("w('')"), log_parser: 'parse_log_pytest' };
  const instances = drawn.map((_, at) => ({
    ...{ ...named(at), ...graded, image: `dir:${tree}`, base_commit: 'HEAD' },
  }));
  const take = async (order: 'given' | 'longest', step: 'first' | 'second'): Promise<RealStep> => {
    const sleeps = drawn.map((own) => own[step].map((seconds) => scale * seconds));
    return await takeStep(environment, worker, { instances, sleeps, size, order });
  };
  const before = await take('given', 'first');
  const longest = await take('longest', 'second');
  const given = await take('given', 'second');
  return { rollouts: size.instances * size.group, slots: size.slots, before, given, longest };
}

/** Submits one step, and waits for its results. The ideal counts what each rollout took on its slot, with the costs of the farm. */
async function takeStep(
  environment: BenchEnvironment,
  { farm }: BenchWorker,
  step: {
    instances: readonly Instance[];
    sleeps: readonly number[][];
    size: Size;
    order: 'given' | 'longest';
  },
): Promise<RealStep> {
  const { instances, sleeps, size, order } = step;
  const conversations = instances.map(({ instance_id: instance }, at) => ({
    instance,
    variants: (sleeps[at] ?? []).map((seconds) => [
      { command: `sleep ${seconds.toFixed(2)}` },
      { submit: true as const },
    ]),
  }));
  await using policy = await startPolicy(environment, `order-${order}`, { conversations }, [
    '--tokens',
    'off',
  ]);
  const flags = { policyUrl: [policy.url], model: 'scripted', activate: ':', eval: false, order };
  const record = recordOf(instances.length, size.group, flags);
  // A worker pauses while other work on the machine delays its event loop.
  await until(async () => (await farm.registry.list()).some(({ paused }) => paused === null), PATIENCE);
  const known = await farm.history.read(record.agent, instances);
  const { seconds: forecast } = requireForecast(await forecastRun(farm, record, instances, known));
  const from = Date.now();
  await submit(farm, { record, instances, known });
  const results = await collect(farm, record.run_id, instances.length * size.group);
  const failed = results.find(({ result }) => result.failure !== null)?.result.failure;
  if (failed) throw new Error(`${failed.stage}/${failed.class}: ${failed.message}`);
  onceEach(results, instances.length * size.group, 0);
  const seconds = (Math.max(...results.map(({ at }) => at)) - from) / 1000;
  const ideal = idealMakespan(
    results.map(({ result }) => result.seconds.total),
    size.slots,
  );
  return {
    seconds: rounded(seconds, 1),
    ideal_seconds: rounded(ideal, 1),
    over_ideal: rounded(seconds / ideal, 2),
    forecast_seconds: forecast && rounded(forecast.expected, 1),
  };
}
