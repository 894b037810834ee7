/**
 * Stores how long judged rollouts of each instance took, and how many tokens: running statistics that commit.lua updates in the step that
 * counts a result. Submits order their groups by them. Redis may lose them: an instance without history has that of its family.
 */
import type { Instance } from '../records/instance.ts';
import type { RunRecord } from '../records/job.ts';
import type { Result } from '../records/result.ts';
import type { Store } from './part.ts';

/** Means over the judged rollouts of one instance, or of many. */
export type RolloutHistory = {
  /** Number of judged rollouts. */
  count: number;
  /** Mean and variance of the natural logarithm of `seconds`. */
  logMean: number;
  logVariance: number;
  /** Seconds in which a rollout has a slot, without the pull of its image. */
  seconds: number;
  agentSeconds: number;
  evaluationSeconds: number;
  promptTokens: number;
  completionTokens: number;
  turns: number;
};

/** Histories of instances by id, and the history of others; null: no rollout of this agent is known. */
export type KnownHistory = {
  of: ReadonlyMap<string, RolloutHistory>;
  /** History of an instance's family, else of all rollouts of the agent. */
  prior: (family: Instance['family']) => RolloutHistory | null;
};

const LIFE_SECONDS = 30 * 24 * 3600;
/** Maximum number of instances of one agent; beyond it a new instance replaces another. */
const MOST_INSTANCES = 100_000;
/** Number of rollouts that a mean weighs at most: of one instance, and of a family. */
const INSTANCE_WEIGHT = 64;
const PRIOR_WEIGHT = 4096;
const LEAST_SECONDS = 0.001;
const BATCH = 1000;

type Agent = Pick<RunRecord['agent'], 'type' | 'card'>;

/** Agents have separate histories, models share one: trainers name a model for each checkpoint. */
const nameOf = ({ type, card }: Agent): string => (type === 'installed' ? `${type}.${card?.name}` : type);
const fieldOf = (family: string, instanceId: string): string => `${family}/${instanceId}`;

/** Returns the argument of history.lua for a result; '' if the result has no history. */
export function historyNote(result: Result): string {
  const { outcome, family, instance_id, tokens, turns } = result;
  // A branch plays a part of a rollout.
  if (outcome !== 'judged' || family === undefined || result.branch_of) return '';
  const { sandbox, agent, patch, evaluation, image, total } = result.seconds;
  // If an attempt resumed earlier work, its total does not include the time of the agent.
  const seconds = Math.max(LEAST_SECONDS, sandbox + agent + patch + evaluation, total - image);
  return JSON.stringify({
    fields: [
      [fieldOf(family, instance_id), INSTANCE_WEIGHT],
      [fieldOf(family, '*'), PRIOR_WEIGHT],
      ['*', PRIOR_WEIGHT],
    ],
    log: Math.log(seconds),
    values: [seconds, agent, evaluation, tokens.prompt, tokens.completion, turns],
    life: LIFE_SECONDS,
    most: MOST_INSTANCES,
  });
}

export const historyKey = (keys: Store['keys'], agent: Agent): string => keys.history(nameOf(agent));

export function createHistory({ redis, keys }: Store) {
  return {
    async read(
      agent: Agent,
      instances: readonly Pick<Instance, 'instance_id' | 'family'>[],
    ): Promise<KnownHistory> {
      const key = historyKey(keys, agent);
      const families = [...new Set(instances.map(({ family }) => family))];
      const priors = await redis.hmget(key, '*', ...families.map((family) => fieldOf(family, '*')));
      const [all = null, ...own] = priors.map(parse);
      const priorOf = new Map(families.map((family, at) => [family, own[at] ?? all]));
      const of = new Map<string, RolloutHistory>();
      for (let at = 0; at < instances.length && all !== null; at += BATCH) {
        const batch = instances.slice(at, at + BATCH);
        const names = batch.map(({ family, instance_id: id }) => fieldOf(family, id));
        for (const [index, text] of (await redis.hmget(key, ...names)).entries()) {
          const known = parse(text);
          if (known) of.set(batch[index]?.instance_id ?? '', known);
        }
      }
      return { of, prior: (family) => priorOf.get(family) ?? all };
    },
  };
}

function parse(text: string | null): RolloutHistory | null {
  const numbers = text?.split(' ').map(Number) ?? [];
  if (numbers.length !== 9 || !numbers.every(Number.isFinite)) return null;
  const [count = 0, logMean = 0, logVariance = 0, ...means] = numbers;
  const [seconds = 0, agentSeconds = 0, evaluationSeconds = 0, promptTokens = 0, ...last] = means;
  const [completionTokens = 0, turns = 0] = last;
  const times = { count, logMean, logVariance, seconds, agentSeconds, evaluationSeconds };
  return { ...times, promptTokens, completionTokens, turns };
}
