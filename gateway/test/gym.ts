/** Rows and answers of Gym's callers. */
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
