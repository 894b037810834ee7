/** What a caller is told of a rollout without a verdict: callers want opposite things (docs/gateway.md has the table). */
import type { GymRow } from '../formats/gym/row.ts';
import type { Caller, FailureAnswer } from './callers.ts';

export type Mode = Exclude<FailureAnswer, 'auto'>;

/** `auto` decides between two callers only: the collector numbers its repeats, NeMo RL does not. */
export const modeOf = (caller: Pick<Caller, 'failures'>, row: GymRow): Mode =>
  caller.failures === 'auto' ? (row._ng_rollout_index == null ? 'nemo-rl' : 'collector') : caller.failures;

/** Callers whose samples are trained on: these need token ids in every one. */
export const trains = (mode: Mode): boolean => mode !== 'collector';

/** Callers that cannot be told of a failure without ending their step: they get a sample without weight where there is one. */
export const prefersMasked = (mode: Mode): boolean => mode === 'nemo-rl-sync' || mode === 'verl-recipe';

/** What a 503 does to the caller, in a line. */
export const CONSEQUENCES: Record<Mode, string> = {
  collector: 'the collection ends here unless it runs with +route_failures_to_sidecar=true',
  'nemo-rl': 'the trainer sends this row again, as after any failure of infrastructure',
  'nemo-rl-sync': 'the trainer has no re-dispatch: this step ends with an error',
  'verl-recipe': 'the recipe takes an empty sample in its place',
};
