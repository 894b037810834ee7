/**
 * Parses the body of `/run`: a row, or an episode request of Gym 0.7.0 (nemo_gym/episode_types.py). The answer to an episode request has the
 * ids of the request, and either a result or a failure.
 */
import { isDeepStrictEqual } from 'node:util';
import { FAILURES, type FailureClass, jsonText } from '@swefarm/shared';
import { z } from 'zod';
import type { Piece } from './json.ts';
import { GymRow } from './row.ts';
import type { Cause } from './unjudged.ts';

const RolloutId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"')
  .regex(/(?<!-a[1-9][0-9]*)$/, 'expected no ending -aN, which is how an attempt is named')
  .max(300);

/** Schema from nemo_gym/episode_types.py and single_agent_turn_types.py, which also refuse unknown keys. */
const EpisodeRequest = z.strictObject({
  episode_id: z.strictObject({ rollout_id: RolloutId, attempt: z.number().int().min(0).default(0) }),
  task: z.strictObject({
    task_id: z.strictObject({ taskset: z.string().min(1), task_id: z.string().min(1) }),
    task_input: z.looseObject({
      responses_create_params: z.looseObject({}),
      task_data: z.record(z.string(), z.unknown()).default({}),
    }),
  }),
});

/** Fields of an episode request that the answer repeats. */
export type Episode = {
  episode_id: { rollout_id: string; attempt: number };
  task_id: { taskset: string; task_id: string };
};

export type GymRunRequest = {
  row: GymRow;
  /** The episode; null: the caller posted a row. */
  episode: Episode | null;
};

/** Path of the row's fields in an episode request, for error messages. */
const INPUT = ['task', 'task_input'];

export const GymRunRequest = z.unknown().transform((body, context): GymRunRequest => {
  const report = (error: z.ZodError, where: readonly string[] = []): never => {
    for (const issue of error.issues) {
      context.issues.push({ ...issue, path: [...where, ...issue.path], input: body } as never);
    }
    return z.NEVER;
  };
  if (!isEpisode(body)) {
    const row = GymRow.safeParse(body);
    return row.success ? { row: row.data, episode: null } : report(row.error);
  }
  const request = EpisodeRequest.safeParse(body);
  if (!request.success) return report(request.error);
  const { episode_id, task } = request.data;
  const { responses_create_params, task_data, ...flat } = task.task_input;
  const other = Object.keys(flat).find(
    (key) => key in task_data && !isDeepStrictEqual(flat[key], task_data[key]),
  );
  if (other !== undefined) {
    const message = 'expected the same value as in task_data, or only one of both';
    context.issues.push({ code: 'custom', message, path: [...INPUT, other], input: body });
    return z.NEVER;
  }
  const row = GymRow.safeParse({ ...task_data, ...flat, responses_create_params });
  if (!row.success) return report(row.error, INPUT);
  return { row: row.data, episode: { episode_id, task_id: task.task_id } };
});

/** Returns whether the body is an episode request. A row may have a field `episode_id` from its dataset, but only as a string. */
const isEpisode = (body: unknown): boolean =>
  body !== null &&
  typeof body === 'object' &&
  'episode_id' in body &&
  body.episode_id !== null &&
  typeof body.episode_id === 'object';

/** Returns Gym's name of an attempt (EpisodeId.capture_key). */
export const episodeName = ({ episode_id: { rollout_id, attempt } }: Episode): string =>
  attempt === 0 ? rollout_id : `${rollout_id}-a${attempt}`;

/** Maximum length of `failure_reason` in Gym. */
const REASON_CHARACTERS = 2000;

/** Wraps the pieces of a `/run` answer as the result of an episode. */
export function* episodePieces(episode: Episode, result: Iterable<Piece>): Generator<Piece> {
  yield `${jsonText(episode).slice(0, -1)},"result":`;
  yield* result;
  yield '}';
}

/**
 * Returns the answer for a rollout without a verdict. `terminal`: Gym and NeMo RL must not request the rollout again. A withheld reward
 * is always terminal. Other causes that would repeat are terminal in training; in a collection only faults of the instance are, because
 * settings may change before a resume.
 */
export function episodeFailure(episode: Episode, cause: Cause, training: boolean): Record<string, unknown> {
  const { class: name, message, kind, terminal } = cause;
  return {
    ...episode,
    failure: {
      failure_reason: `${name}: ${message}`.slice(0, REASON_CHARACTERS),
      terminal: terminal === true || kind === 'withheld' || (training && kind === 'broken'),
      ...namesOf(cause),
    },
  };
}

/** Returns Gym's name of the failure (nemo_gym/failure_kinds.py); if Gym has none, the farm's name with the prefix `swe_farm:`. */
function namesOf({ class: name, noPersist }: Cause): { failure_kind: string; stage?: string } {
  if (noPersist) return { failure_kind: 'cancelled' };
  const { stage } = FAILURES[name as FailureClass] ?? {};
  const kind = KINDS[name] ?? `swe_farm:${name}`;
  switch (stage) {
    case 'image':
    case 'instance':
      return { failure_kind: kind, stage: IN_GRADING.has(name) ? 'verification' : 'seed' };
    case 'sandbox':
      return { failure_kind: KINDS[name] ?? 'provider_unavailable', stage: 'agent' };
    case 'evaluation':
      return { failure_kind: 'verifier_error', stage: 'verification' };
    case 'policy':
    case 'worker':
      return { failure_kind: kind, stage: 'agent' };
    default:
      return { failure_kind: kind };
  }
}

/** Failure classes that appear only when an instance's tests run. */
const IN_GRADING: ReadonlySet<string> = new Set(['tests_cannot_start', 'parser_failed']);

const KINDS: Readonly<Record<string, string>> = {
  node_memory: 'provider_oom_killed',
  policy_unreachable: 'transport_unreachable',
  policy_silent: 'transport_timeout',
  policy_slow: 'agent_timeout',
  lost: 'session_lost',
  session_lost: 'session_lost',
  artifact_store: 'persistence_failed',
};
