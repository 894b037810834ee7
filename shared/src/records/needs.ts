/**
 * Which records a version of the software may work on. A run, an instance or a job says with `needs` what whoever works on it must know of;
 * who knows less leaves it to others, unopened. So fleets of two versions share one Redis while one replaces the other.
 *
 * Whoever gives a record a meaning that earlier versions would miss (a new value of an enum, a new key that changes what is done)
 * raises {@link UNDERSTOOD} and writes that number as `needs` where the new meaning is used, and only there.
 */
import { z } from 'zod';
import type { Instance } from './instance.ts';
import type { Sampling, SamplingKey } from './sampling.ts';

/**
 * What this version knows of. 1: all that records could say when `needs` was introduced. 2: the sampling contract, sequence
 * budgets, spans, what trainers ask of a run. 3: instances with an environment and a plan of their own.
 * 4: pictures that the model is sent.
 */
export const UNDERSTOOD = 4;

/** As it is stored in a record; absent from older records. */
export const Needs = z.number().int().nonnegative().default(0);

/** The `needs` of a record of whatever version; 0 when it says nothing. */
export function needsOf(record: unknown): number {
  const { needs } = (record !== null && typeof record === 'object' ? record : {}) as { needs?: unknown };
  return typeof needs === 'number' && needs >= 0 ? needs : 0;
}

/** Of a run's settings those that level 2 brought. */
type Asked = {
  agent: { max_sequence_tokens: number | null };
  policy: {
    routed_experts: string;
    tool_parser: string;
    require_tokens: boolean;
    sampling: Sampling;
  } | null;
};

const LEVEL_2: readonly ((run: Asked) => boolean)[] = [
  ({ agent }) => agent.max_sequence_tokens !== null,
  // Older workers drop the experts, which is what `auto` and `drop` allow.
  ({ policy }) => policy?.routed_experts === 'require',
  // They read two forms of calls, whatever the run names.
  ({ policy }) => policy !== null && policy.tool_parser !== 'auto',
  // They leave keys of the sampling to the server, which training must not.
  ({ policy }) => policy?.require_tokens === true,
  ({ policy }) => NEW_KEYS.some((key) => policy?.sampling[key] !== undefined),
];

/** Keys that older workers do not know; `seed` they send unchanged, the same for all siblings and turns. */
const NEW_KEYS: readonly SamplingKey[] = [
  'top_k',
  'min_p',
  'repetition_penalty',
  'presence_penalty',
  'frequency_penalty',
  'stop',
  'seed',
];

/** Families that workers of every level know by their columns. */
const EARLIEST: ReadonlySet<string> = new Set(['swebench', 'swegym', 'swesmith', 'custom']);

/** The instance as it is written for workers: with the level that whoever works on it must know of, or with none. */
export function withNeeds(instance: Instance): Instance {
  const { environment, plan, family, pictures } = instance;
  const planned = environment || plan || !EARLIEST.has(family) ? 3 : 0;
  const shown = pictures?.some(({ file }) => file) ? 4 : 0;
  const needs = Math.max(planned, shown, needsOf(instance));
  return needs === 0 ? instance : { ...instance, needs };
}

/** The `needs` of a new run: as little as its settings allow, so that older workers take what they know all of. */
export const neededBy = (run: Asked): number => (LEVEL_2.some((uses) => uses(run)) ? 2 : 0);
