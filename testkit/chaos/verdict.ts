/** Compares the expected results with the actual results. Pure, so that unit tests cover it. */
import type { FailureClass, Replay } from '@swefarm/shared';
import type { FaultKind } from './schedule.ts';
import { actOf } from './script.ts';

/** The fields of a result that are judged here. */
export type Seen = {
  rollout_id: string;
  instance_id: string;
  rollout_index: number;
  outcome: 'judged' | 'failed' | 'cancelled';
  reward: number | null;
  reward_row: string;
  resolved: boolean | null;
  turns: number;
  attempt: number;
  claim?: string | undefined;
  artifact: string | null;
  failure: { class: FailureClass; message: string } | null;
  replay?: Replay | undefined;
  tokens: { completion: number };
};

/** One call of `/run`, including its repetitions. */
export type Call = { name: string; rollout_id: string | null; reward: number | null; failed: string | null };

export type Evidence = {
  /** Ids of the rollouts that the producer submitted. */
  asked: readonly string[];
  /** The result streams of all runs, in order, with repetitions if there are any. */
  results: readonly Seen[];
  /** Lines that the producer's collector wrote. */
  lines: readonly Seen[];
  calls: readonly Call[];
  struck: ReadonlySet<FaultKind>;
  /** Descriptions of the leftovers of the farm. */
  leftovers: readonly string[];
};

/**
 * Faults that can cause each class of failure when they outlast all retries. Such a failure has no reward. `lost` needs three
 * dead workers in a row; the other classes need as many attempts as their budgets (docs/reliability.md).
 */
export const HONEST: Readonly<Partial<Record<FailureClass, readonly FaultKind[]>>> = {
  lost: ['worker_kill', 'worker_clock'],
  engine_unreachable: ['engine_restart'],
  sandbox_start: ['engine_restart', 'disk_full'],
  sandbox_lost: ['engine_restart'],
  evaluation_lost: ['engine_restart', 'disk_full'],
  node_disk: ['disk_full'],
  patch_take: ['engine_restart', 'disk_full'],
  image_pull: ['engine_restart'],
  policy_unreachable: ['endpoint_cut', 'endpoint_hang'],
  policy_server_error: ['endpoint_errors'],
  policy_silent: ['endpoint_hang'],
};

/** Returns a line for each problem; no line: the farm kept its promises. */
export function judgeFarm(evidence: Evidence): string[] {
  return [
    ...onceEach(evidence),
    ...evidence.results.flatMap((seen) => earned(seen, evidence.struck)),
    ...sameInOutput(evidence),
    ...callsAnswered(evidence),
    ...evidence.leftovers.map((what) => `left behind: ${what}`),
  ];
}

function onceEach({ asked, results, calls }: Evidence): string[] {
  const counts = new Map<string, number>();
  for (const { rollout_id } of results) counts.set(rollout_id, (counts.get(rollout_id) ?? 0) + 1);
  const wanted = new Set([...asked, ...calls.flatMap((call) => call.rollout_id ?? [])]);
  return [
    ...[...wanted].filter((id) => !counts.has(id)).map((id) => `${id}: no result`),
    ...[...counts].filter(([, count]) => count > 1).map(([id, count]) => `${id}: ${count} results`),
    ...[...counts.keys()]
      .filter((id) => !wanted.has(id))
      .map((id) => `${id}: a result of a rollout that was not submitted`),
  ];
}

function earned(seen: Seen, struck: ReadonlySet<FaultKind>): string[] {
  const { rollout_id, instance_id, rollout_index, outcome, reward, resolved, turns, failure } = seen;
  const act = actOf(instance_id, rollout_index);
  if (outcome === 'judged') {
    const { earns } = act;
    const same = reward === earns.reward && resolved === earns.resolved && turns === earns.turns;
    const got = `reward ${reward}, resolved ${resolved}, ${turns} turns (${seen.reward_row})`;
    const due = `reward ${earns.reward}, resolved ${earns.resolved}, ${earns.turns} turns`;
    return same ? [] : [`${rollout_id} (${act.name}): ${got}, where the script earns ${due}`];
  }
  if (outcome === 'cancelled')
    return [`${rollout_id}: cancelled (${seen.reward_row}) without a cancellation`];
  if (reward !== null) return [`${rollout_id}: failed as ${failure?.class} with reward ${reward}`];
  const causes = failure ? (HONEST[failure.class] ?? []) : [];
  if (causes.some((kind) => struck.has(kind))) return [];
  return [
    `${rollout_id} (${act.name}): failed as ${failure?.class}, which no fault explains: ${failure?.message}`,
  ];
}

function sameInOutput({ asked, results, lines }: Evidence): string[] {
  const byId = new Map(results.map((seen) => [seen.rollout_id, seen]));
  const written = new Set<string>();
  const problems: string[] = [];
  for (const line of lines) {
    const result = byId.get(line.rollout_id);
    if (written.has(line.rollout_id)) problems.push(`${line.rollout_id}: twice in the output`);
    if (!result || result.reward !== line.reward || result.outcome !== line.outcome)
      problems.push(
        `${line.rollout_id}: the output has ${line.outcome} ${line.reward}, the farm another result`,
      );
    written.add(line.rollout_id);
  }
  for (const id of asked) if (!written.has(id)) problems.push(`${id}: not in the output`);
  return problems;
}

function callsAnswered({ calls, results }: Evidence): string[] {
  const byId = new Map(results.map((seen) => [seen.rollout_id, seen]));
  const problems: string[] = [];
  const taken = new Map<string, string>();
  for (const { name, rollout_id, reward, failed } of calls) {
    if (rollout_id === null) {
      problems.push(`call ${name}: never answered (${failed})`);
      continue;
    }
    const other = taken.get(rollout_id);
    if (other !== undefined) problems.push(`calls ${other} and ${name} were answered by one rollout`);
    taken.set(rollout_id, name);
    const result = byId.get(rollout_id);
    if (failed === null && reward !== result?.reward)
      problems.push(`call ${name}: answered with reward ${reward}, its rollout has ${result?.reward}`);
    if (failed !== null && result?.outcome === 'judged')
      problems.push(`call ${name}: answered as ${failed}, its rollout was judged`);
  }
  return problems;
}
