/** Rows and answers of Gym's callers, and the rollouts that they queue. */
import type { Farm } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { bearer } from './gateway.ts';

export const POLICY = { policy_base_url: 'http://127.0.0.1:9/v1', policy_model_name: 'm' };

export function row(over: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    responses_create_params: { input: [], temperature: 1 },
    agent_ref: { name: 'swe_farm' },
    instance_id: 'a__b-1',
    repo: 'a/b',
    base_commit: 'c0',
    problem_statement: 'It breaks.',
    image_name: 'x:1',
    patch: 'gold',
    test_patch: '',
    version: '1',
    FAIL_TO_PASS: ['t'],
    PASS_TO_PASS: [],
    ...POLICY,
    ...over,
  };
}

const { policy_base_url, policy_model_name, responses_create_params, agent_ref, ...instance } = row();
/** The row as an instance of a submitted run, and the settings of such a run. */
export const INSTANCE = instance;
export const RUN = { policy: { urls: [POLICY.policy_base_url], model: POLICY.policy_model_name } };

export const post = (
  url: string,
  body: unknown,
  options: { signal?: AbortSignal; headers?: Record<string, string>; path?: string; method?: string } = {},
): Promise<Response> =>
  fetch(`${url}${options.path ?? '/run'}`, {
    method: options.method ?? 'POST',
    headers: { 'content-type': 'application/json', ...bearer(), ...options.headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(options.signal ? { signal: options.signal } : {}),
  });

export type Reply = {
  reward: number;
  rollout_id: string;
  instance_config: { mask_sample: boolean };
  response: { output: Record<string, unknown>[] };
  [key: string]: unknown;
};

export const rolloutOf = async (reply: Response | Promise<Response>): Promise<string> =>
  ((await (await reply).json()) as Reply).rollout_id;

/** Returns the ids of queued rollouts. */
export const queued = async (farm: Farm): Promise<string[]> =>
  (await farm.queue().getJobs(['prioritized', 'waiting']))
    .flatMap((job) => (job.id ? [job.id] : []))
    .toSorted();

export const untilQueued = (farm: Farm, count: number): Promise<number> =>
  until(async () => (await queued(farm)).length === count);

/** Commits a result for each queued rollout. */
export async function finish(farm: Farm, over: Parameters<typeof commitRollout>[3] = {}): Promise<void> {
  for (const job of await farm.queue().getJobs(['prioritized', 'waiting'])) {
    const run = await farm.runs.get(job.data.run_id);
    if (run) await commitRollout(farm, run, job.data.rollout_id, over);
    await job.remove();
  }
}
