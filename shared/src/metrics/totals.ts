/** Makes metric families from the sums of `commit` in Redis (names: redis/counters.ts). */
import { FAILURE_CLASSES, FAILURES } from '../failures/failure.ts';
import { DatasetFamily } from '../records/instance.ts';
import { RunRecord } from '../records/job.ts';
import { EvaluationEnd } from '../records/report.ts';
import { CancelReason, Outcome, RewardFacts, Seconds } from '../records/result.ts';
import { REWARD_PARTS } from '../records/rewardparts.ts';
import { ExitStatus } from '../records/trajectory.ts';
import type { Point } from './definition.ts';
import { FAMILY_ENDS, OUTCOME_METRICS as M, ROLLOUT_BUCKETS, TURN_BUCKETS } from './outcomes.ts';
import { type Family, family } from './text.ts';

/** Sums by counter; an absent counter is zero. */
type Sums = Readonly<Record<string, number>>;
/** Sums by kind of run. */
type Totals = ReadonlyMap<string, Sums>;

const KINDS = RunRecord.shape.kind.unwrap().options;
const STAGES = Object.keys(Seconds.shape).filter((stage) => stage !== 'total');
const TRUST = RewardFacts.shape.trust.options;
const DROPPED = ['uniform', 'short', 'cancelled', 'surplus'];
const ATTEMPT_ENDS = ['done', 'drained', 'parked', ...FAILURE_CLASSES];

/** Returns the metrics of outcomes. Known label values start at zero, so that Prometheus sees the first count as an increase. */
export function outcomeFamilies(totals: Totals): Family[] {
  const of = (kind: string, counter: string): number => totals.get(kind)?.[counter] ?? 0;
  const perKind = (counter: string): Point<'kind'>[] =>
    KINDS.map((kind) => ({ labels: { kind }, value: of(kind, counter) }));
  /** Returns points with one more label, for its known values and all other counted values. */
  const split = <L extends string>(label: L, prefix: string, known: readonly string[]) =>
    KINDS.flatMap((kind) => {
      const seen = Object.keys(totals.get(kind) ?? {}).flatMap((name) =>
        name.startsWith(`${prefix}:`) ? [name.slice(prefix.length + 1)] : [],
      );
      return [...new Set([...known, ...seen])].map((value) => ({
        labels: { kind, [label]: value } as Record<'kind' | L, string>,
        value: of(kind, `${prefix}:${value}`),
      }));
    });
  const histogram = (prefix: string, bounds: readonly number[]): Point<'kind'>[] =>
    KINDS.map((kind) => ({
      labels: { kind },
      value: {
        buckets: [...bounds.map(String), '+Inf'].map((bound) => of(kind, `${prefix}_in:${bound}`)),
        sum: of(kind, `${prefix}_sum`),
      },
    }));
  const tokens = KINDS.flatMap((kind) =>
    ['prompt', 'completion'].map((side) => ({ labels: { kind, side }, value: of(kind, `${side}_tokens`) })),
  );
  return [
    family(M.rollouts, split('outcome', 'outcome', Outcome.options)),
    family(M.resolved, perKind('resolved')),
    family(M.scored, perKind('scored')),
    family(M.failed, failurePoints(of)),
    family(M.cancelled, split('reason', 'cancelled', CancelReason.options)),
    family(M.exits, split('exit_status', 'exit', ExitStatus.options)),
    family(M.answers, perKind('answers')),
    family(M.unread, split('marker', 'unread', [])),
    family(M.turns, histogram('turns', TURN_BUCKETS)),
    family(M.seconds, histogram('total', ROLLOUT_BUCKETS)),
    family(M.stageSecondsSum, split('stage', 'seconds', STAGES)),
    family(M.tokens, tokens),
    family(M.cost, split('model', 'cost', [])),
    family(M.priced, split('model', 'priced', [])),
    family(M.pricedResolved, split('model', 'priced_resolved', [])),
    family(M.rewarded, perKind('rewarded')),
    family(M.reward, perKind('reward_sum')),
    family(M.part, split('part', 'part', REWARD_PARTS)),
    family(M.partKnown, split('part', 'part_known', REWARD_PARTS)),
    family(M.reports, split('trust', 'trust', TRUST)),
    family(M.evaluations, split('end', 'evaluation', EvaluationEnd.options)),
    family(M.attempts, split('class', 'attempt', ATTEMPT_ENDS)),
    family(M.groups, split('end', 'groups', ['complete', 'short'])),
    family(M.mixedGroups, perKind('mixed_groups')),
    family(M.droppedGroups, split('reason', 'dropped', DROPPED)),
    family(M.refills, perKind('refills')),
    family(M.families, familyPoints(totals)),
  ];
}

const failurePoints = (of: (kind: string, counter: string) => number) =>
  KINDS.flatMap((kind) =>
    FAILURE_CLASSES.map((name) => ({
      labels: { kind, stage: FAILURES[name].stage, class: name },
      value: of(kind, `failure:${name}`),
    })),
  );

/** Returns the counts of each dataset family, known or counted, for all ends. */
function familyPoints(totals: Totals): Point<'kind' | 'family' | 'end'>[] {
  return KINDS.flatMap((kind) => {
    const sums = totals.get(kind) ?? {};
    const counted = Object.keys(sums).flatMap((name) => /^family:(.+):[a-z]+$/.exec(name)?.[1] ?? []);
    return [...new Set([...DatasetFamily.options, ...counted])].flatMap((name) =>
      FAMILY_ENDS.map((end) => ({
        labels: { kind, family: name, end },
        value: sums[`family:${name}:${end}`] ?? 0,
      })),
    );
  });
}

/** @param versions sums by kind of run and policy version */
export function versionFamilies(versions: ReadonlyMap<string, ReadonlyMap<string, Sums>>): Family[] {
  const each = [...versions].flatMap(([kind, byVersion]) =>
    [...byVersion].map(([version, sums]) => ({ labels: { kind, version }, sums })),
  );
  const points = (counter: string): Point<'kind' | 'version'>[] =>
    each.map(({ labels, sums }) => ({ labels, value: sums[counter] ?? 0 }));
  const outcomes = each.flatMap(({ labels, sums }) =>
    Outcome.options.map((outcome) => ({
      labels: { ...labels, outcome },
      value: sums[`outcome:${outcome}`] ?? 0,
    })),
  );
  return [
    family(M.versionRollouts, outcomes),
    family(M.versionResolved, points('resolved')),
    family(M.versionScored, points('scored')),
    family(M.versionTurns, points('turns_sum')),
    family(M.versionReward, points('reward_sum')),
  ];
}
