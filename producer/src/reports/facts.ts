/** Converts a result, or its output line, to the facts that a report counts. */
import type { Result } from '@swefarm/shared';
import type { OutputLine } from '../output/line.ts';
import type { RolloutFact } from '../output/profile.ts';

export type LineFacts = Pick<
  Result,
  | 'instance_id'
  | 'family'
  | 'rollout_id'
  | 'outcome'
  | 'resolved'
  | 'reward'
  | 'reward_row'
  | 'turns'
  | 'failure'
  | 'facts'
  | 'tokens'
  | 'exit_status'
> &
  Partial<Pick<OutputLine, 'report' | 'tag' | 'cost'>>;

/** What the analysis of a report needs beside what every profile counts. */
export type LineFact = RolloutFact & {
  rollout_id: string;
  /** Of its instance; null: its result does not say. */
  family: string | null;
  exit_status: string | null;
  /** Of all prompts and answers. */
  tokens: number;
  /** US dollars; null: not known. */
  cost: number | null;
  tag: string | null;
  /** Of a verifier; null: none. */
  score: number | null;
};

/** Rollouts of one instance are a group, in whichever shard they are. */
export function factOf(line: LineFacts, repo = repositoryOf(line.instance_id)): LineFact {
  const { outcome, failure, facts, report } = line;
  const evaluation = report?.evaluation ?? facts?.evaluation;
  return {
    rollout_id: line.rollout_id,
    family: line.family ?? null,
    exit_status: line.exit_status,
    tokens: line.tokens.prompt + line.tokens.completion,
    cost: line.cost ?? null,
    tag: line.tag ?? null,
    score: null,
    group: line.instance_id,
    repo,
    outcome,
    resolved: line.resolved,
    reward: line.reward,
    turns: line.turns,
    patch_applied: (report?.patch_state ?? facts?.patch_state) === 'applied',
    evaluation_error: failure?.stage === 'evaluation' || evaluation === 'tests_cannot_start',
    failure: failure && `${failure.stage}/${failure.class}`,
    cancelled: outcome === 'cancelled' ? line.reward_row : null,
  };
}

/** Outputs do not store the repository: SWE-bench and SWE-Gym name instances owner__name-number, SWE-smith owner__name.commit.bug. */
export function repositoryOf(instanceId: string): string {
  const match = /^(.+?)__(.+?)(?:-\d+|\.[0-9a-f]{8}\..*)?$/.exec(instanceId);
  return match ? `${match[1]}/${match[2]}` : 'unknown';
}
