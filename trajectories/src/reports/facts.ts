import type { LineSummary, OutputLine } from '../output/line.ts';
import type { RolloutFact } from '../output/profile.ts';

export type LineFacts = LineSummary & Partial<Pick<OutputLine, 'report' | 'facts'>>;

export type LineFact = ReturnType<typeof factOf>;

/** Converts a result to the facts that a report counts. All rollouts of an instance form a group, even in several files. */
export function factOf(line: LineFacts, repo = repositoryOf(line.instance_id, line.family)) {
  const { outcome, failure, facts, report } = line;
  const evaluation = report?.evaluation ?? facts?.evaluation;
  const fact: RolloutFact = {
    group: line.instance_id,
    repo,
    outcome,
    resolved: line.resolved,
    reward: line.reward,
    ...(line.reward_parts ? { reward_parts: line.reward_parts } : {}),
    turns: line.turns,
    patch_applied: (report?.patch_state ?? facts?.patch_state) === 'applied',
    evaluation_error: failure?.stage === 'evaluation' || evaluation === 'tests_cannot_start',
    failure: failure && `${failure.stage}/${failure.class}`,
    cancelled: outcome === 'cancelled' ? line.reward_row : null,
  };
  return {
    ...fact,
    rollout_id: line.rollout_id,
    /** Id of the rollout in an earlier output that this rollout replaces. */
    ...(line.replaces === undefined ? {} : { replaces: line.replaces }),
    /** Family of the instance; null: unknown. */
    family: line.family ?? null,
    exit_status: line.exit_status,
    /** Sum over all prompts and answers. */
    tokens: line.tokens.prompt + line.tokens.completion,
    /** Cost in US dollars; null: unknown. */
    cost: line.cost ?? null,
    tag: line.tag ?? null,
    components: (outcome === 'judged' ? line.reward_components : undefined) ?? {},
    score: null as number | null,
    /** The agent that came as a program; null: an agent of the farm. */
    agent: line.agent ?? null,
  };
}

/**
 * Derives the repository from the instance id: `owner__name-number` in most families, `owner__name.commit.bug` in SWE-smith,
 * `instance_owner__name-commit` in SWE-bench Pro, `name-commit` in R2E-Gym, `owner_name_prNUMBER` in Scale-SWE; otherwise `unknown`.
 */
export function repositoryOf(instanceId: string, family?: string | null): string {
  const id = instanceId.replace(/^instance_(?=.*-[0-9a-f]{40})/, '').replace(/-[0-9a-f]{40}(-v\w+)?$/, '');
  const scale = family === 'scale-swe' ? /^([^_]+)_(.+)_pr\d+$/.exec(id) : null;
  const match = scale ?? /^(.+?)__(.+?)(?:-\d[\d.]*|\.[0-9a-f]{8}\..*)?$/.exec(id);
  if (match) return `${match[1]}/${match[2]}`;
  return id === instanceId ? 'unknown' : id;
}
