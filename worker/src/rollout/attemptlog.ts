import { FAILURES, type Seconds } from '@swefarm/shared';
import { type AttemptContext, type Conclusion, failureIn } from './context.ts';
import { tokensOf } from './result.ts';

/** `won`: whether this attempt committed the result; false: another attempt committed first. */
export type Ended = Pick<AttemptContext, 'trace' | 'previous'> & { won: boolean; seconds: Seconds };

/** Returns fields for machines and a sentence for people. */
export function summaryOf(conclusion: Conclusion, ended: Ended) {
  const { won, trace, previous, seconds } = ended;
  const { outcome } = conclusion;
  const judged = outcome === 'judged' ? conclusion.judged : null;
  const failure = failureIn(conclusion);
  const facts = judged?.facts ?? trace.facts;
  const turns = trace.trajectory?.turns ?? [];
  const before = previous.map(({ end }) => end?.class ?? 'lost');
  const fields = {
    outcome,
    won,
    resolved: judged?.resolved ?? null,
    reward: judged?.reward ?? null,
    row: judged?.row ?? null,
    exit_status: trace.trajectory?.exit_status ?? null,
    turns: turns.length,
    tokens: tokensOf(trace.trajectory),
    policy_version: turns.at(-1)?.policy_version.end ?? null,
    patch_state: facts?.patch_state ?? null,
    evaluation: facts?.evaluation ?? null,
    trust: facts?.trust ?? null,
    graded_by: trace.gradedBy,
    failure: failure && `${failure.stage}/${failure.class}`,
    where: failure && FAILURES[failure.class].where,
    before,
    seconds,
  };
  return { fields, sentence: sentenceOf(conclusion, ended, before) };
}

function verdictOf(conclusion: Conclusion): string {
  if (conclusion.outcome === 'failed') return conclusion.failure.message;
  if (conclusion.outcome === 'cancelled') return '';
  const { resolved, reward, row } = conclusion.judged;
  return `${resolved ? 'resolved' : 'not resolved'}, reward ${reward ?? 'none'} (${row})`;
}

function sentenceOf(conclusion: Conclusion, { won, trace, seconds }: Ended, before: string[]): string {
  const { trajectory } = trace;
  const agent = trajectory
    ? `${trajectory.turns.length} turns, ${trajectory.exit_status ?? 'unfinished'}`
    : 'no turns';
  const parts = [
    won ? conclusion.outcome : `${conclusion.outcome}, too late: another attempt was first`,
    verdictOf(conclusion),
    agent,
    `${seconds.total.toFixed(1)} s`,
    before.length > 0 ? `after ${before.join(', ')}` : '',
  ];
  return parts.filter((part) => part !== '').join('; ');
}
