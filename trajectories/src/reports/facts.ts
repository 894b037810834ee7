import type { LineSummary, OutputLine } from '../output/line.ts';
import type { RolloutFact } from '../output/profile.ts';

export type LineFacts = LineSummary & Partial<Pick<OutputLine, 'report' | 'facts'>>;

export type LineFact = RolloutFact & {
  rollout_id: string;
  /** Id of the rollout in an earlier output that this rollout replaces. */
  replaces?: string;
  /** Family of the instance; null: unknown. */
  family: string | null;
  exit_status: string | null;
  /** Sum over all prompts and answers. */
  tokens: number;
  /** Cost in US dollars; null: unknown. */
  cost: number | null;
  tag: string | null;
  components: Readonly<Record<string, number>>;
  score: number | null;
};

/** Converts a result to the facts that a report counts. All rollouts of an instance form a group, even in several files. */
export function factOf(line: LineFacts, repo = repositoryOf(line.instance_id, line.family)): LineFact {
  const { outcome, failure, facts, report } = line;
  const evaluation = report?.evaluation ?? facts?.evaluation;
  return {
    rollout_id: line.rollout_id,
    ...(line.replaces === undefined ? {} : { replaces: line.replaces }),
    family: line.family ?? null,
    exit_status: line.exit_status,
    tokens: line.tokens.prompt + line.tokens.completion,
    cost: line.cost ?? null,
    tag: line.tag ?? null,
    components: (outcome === 'judged' ? line.reward_components : undefined) ?? {},
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

/**
 * Derives the repository from the instance id: `owner__name-number` in most families, `owner__name.commit.bug` in SWE-smith,
 * `instance_owner__name-commit` in SWE-bench Pro, `name-commit` in R2E-Gym, `owner_name_prNUMBER` in Scale-SWE.
 */
export function repositoryOf(instanceId: string, family?: string | null): string {
  const id = instanceId.replace(/^instance_(?=.*-[0-9a-f]{40})/, '').replace(/-[0-9a-f]{40}(-v\w+)?$/, '');
  const scale = family === 'scale-swe' ? /^([^_]+)_(.+)_pr\d+$/.exec(id) : null;
  const match = scale ?? /^(.+?)__(.+?)(?:-\d[\d.]*|\.[0-9a-f]{8}\..*)?$/.exec(id);
  if (match) return `${match[1]}/${match[2]}`;
  return id === instanceId ? 'unknown' : id;
}
