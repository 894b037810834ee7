/** Evaluates the gold patch and the untouched tree of instances in one run: for `swefarm health` and `swefarm dataset verify`. */
import type { Dataset } from '@swefarm/datasets';
import { untouchedPatch } from '@swefarm/grading';
import type { HealthFinding } from '@swefarm/runs';
import { type EvaluationRound, healthFinding, newRunRecord, rolloutIds } from '@swefarm/runs';
import { type ArtifactContent, parseRolloutId, type Result } from '@swefarm/shared';
import { streamOutput } from '@swefarm/trajectories';
import { planGrading } from '../eval/gradingplans.ts';
import { group, text, type Values } from './declare.ts';
import { openHome } from './farm.ts';
import { DATASET, FARM, GRADING, producerConfig, WORKER_COMMAND, WORKER_RUNTIME } from './options.ts';
import { runSession } from './session.ts';
import type { Stop } from './stop.ts';
import { localWorkers } from './workers.ts';

export type Examined = {
  findings: Map<string, HealthFinding>;
  /** Why an instance has no finding: class and message of the failed evaluation of the gold patch. */
  unjudged: Map<string, Unjudged>;
  complete: boolean;
};

type Unjudged = { reason: string; message: string };

export const EXAMINATION = {
  '--timeout <seconds>': text('longest time of the tests (default: 1800)'),
  '--health <file>': text('file that records the findings (default: health.jsonl in the state folder)'),
  ...DATASET,
  ...GRADING,
  ...WORKER_RUNTIME,
  ...group('Worker:', {
    '--concurrency <n>': text('evaluations at once; auto: what the machine allows'),
  }),
  ...WORKER_COMMAND,
  ...FARM,
};
export type ExaminationValues = Values<typeof EXAMINATION>;

/** Evaluates all instances in one run. The first rollouts of an instance evaluate the gold patch, the others the untouched tree. */
export async function examine(
  dataset: Dataset,
  o: ExaminationValues,
  times: { gold: number; noop: number },
  stop: Stop,
): Promise<Examined> {
  const { instances } = dataset;
  if (instances.length === 0) return { findings: new Map(), unjudged: new Map(), complete: true };
  const groupSize = String(times.gold + times.noop);
  const flags = { ...o.run, agent: 'patch', kind: 'validation', groupSize, evalTimeout: o.timeout };
  const record = newRunRecord({ dataset, flags }, false);
  const plans = planGrading(instances, record.evaluation.grader);
  const patches = new Map(
    instances.map(({ instance_id, patch }) => {
      const own = Array<string>(times.gold + times.noop).fill(untouchedPatch(plans.of(instance_id)));
      return [instance_id, own.fill(patch, 0, times.gold)];
    }),
  );
  const rounds = new Map<string, EvaluationRound[]>();
  await using stack = new AsyncDisposableStack();
  const home = await openHome(producerConfig(o), record, null, stack, stop.draining);
  const output = stack.use(streamOutput(() => Promise.resolve()));
  const onResult = async (result: Result, content: ArtifactContent | null): Promise<void> => {
    const { instanceId, index } = parseRolloutId(result.rollout_id);
    const own = rounds.get(instanceId) ?? [];
    own[index] = { result, report: content?.report ?? null };
    rounds.set(instanceId, own);
  };
  const rollouts = new Set(rolloutIds(record, instances));
  const { complete } = await runSession({
    ...{ ...home, output, record, instances, patches, stop },
    ...{ rollouts, onResult, workers: localWorkers(o, home) },
    // Untouched trees should not resolve, so a number of resolved rollouts would mislead.
    words: { resolved: false, turns: false },
  });
  const findings = new Map<string, HealthFinding>();
  const unjudged = new Map<string, Unjudged>();
  for (const instance of instances) {
    const own = rounds.get(instance.instance_id) ?? [];
    const network = instance.needs_egress ? 'egress' : record.sandbox.eval_network;
    // Rounds without a result are holes in the array.
    const gold = own.slice(0, times.gold).filter((round) => round !== undefined);
    const noop = own.slice(times.gold).filter((round) => round !== undefined);
    const finding = healthFinding(instance, network, gold, noop, new Date());
    if (finding) findings.set(instance.instance_id, finding);
    else unjudged.set(instance.instance_id, unjudgedBecause(gold));
  }
  return { findings, unjudged, complete };
}

/** Returns the first failure among the evaluations of the gold patch. */
function unjudgedBecause(gold: readonly EvaluationRound[]): Unjudged {
  const failure = gold.map(({ result }) => result.failure).find((one) => one !== null);
  if (failure) return { reason: failure.class, message: failure.message };
  const message = gold.length === 0 ? 'it was not evaluated' : 'no evaluation has a verdict and an image';
  return { reason: 'not evaluated', message };
}
