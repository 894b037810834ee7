/** The one line about an attempt that alone explains what became of its rollout. */
import { FAILURES, type Failure, type JournalEntry, type Outcome, type Seconds } from '@swefarm/shared';
import type { Judged } from './facts.ts';
import type { Trace } from './task.ts';

export type Ended = {
  outcome: Outcome;
  judged: Judged | null;
  failure: Failure | null;
  /** False: another attempt's result was first. */
  won: boolean;
  trace: Trace;
  previous: readonly JournalEntry[];
  seconds: Seconds;
};

/** Fields for machines, and a sentence for people. */
export function summaryOf(ended: Ended): { fields: Record<string, unknown>; sentence: string } {
  const { outcome, judged, failure, won, trace, previous, seconds } = ended;
  const facts = judged?.facts ?? trace.facts;
  const turns = trace.trajectory?.turns ?? [];
  const before = previous.map(({ end }) => end?.class ?? 'lost');
  const tokens = (key: 'prompt_tokens' | 'completion_tokens'): number =>
    turns.reduce((sum, { usage }) => sum + (usage?.[key] ?? 0), 0);
  const fields = {
    outcome,
    won,
    resolved: judged?.resolved ?? null,
    reward: judged?.reward ?? null,
    row: judged?.row ?? null,
    exit_status: trace.trajectory?.exit_status ?? null,
    turns: turns.length,
    tokens: { prompt: tokens('prompt_tokens'), completion: tokens('completion_tokens') },
    policy_version: turns.at(-1)?.policy_version.end ?? null,
    patch_state: facts?.patch_state ?? null,
    evaluation: facts?.evaluation ?? null,
    trust: facts?.trust ?? null,
    failure: failure && `${failure.stage}/${failure.class}`,
    where: failure && FAILURES[failure.class].where,
    before,
    seconds,
  };
  return { fields, sentence: sentenceOf(ended, before) };
}

function sentenceOf({ outcome, judged, failure, won, trace, seconds }: Ended, before: string[]): string {
  const verdict =
    outcome === 'judged'
      ? `${judged?.resolved ? 'resolved' : 'not resolved'}, reward ${judged?.reward ?? 'none'} (${judged?.row})`
      : (failure?.message ?? '');
  const { trajectory } = trace;
  const agent = trajectory
    ? `${trajectory.turns.length} turns, ${trajectory.exit_status ?? 'unfinished'}`
    : 'no turns';
  const parts = [
    won ? outcome : `${outcome}, too late: another attempt was first`,
    verdict,
    agent,
    `${seconds.total.toFixed(1)} s`,
    before.length > 0 ? `after ${before.join(', ')}` : '',
  ];
  return parts.filter((part) => part !== '').join('; ');
}
