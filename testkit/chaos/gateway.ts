/** Runs the gateway as a process that may be killed, and callers that post a row until they get an answer. */
import { sleep } from '@swefarm/shared';
import { startCommand, words } from '../src/launchers/commands.ts';
import { TELLS_LISTENING } from '../src/launchers/listens.ts';
import { openSlot, type Slot } from './slot.ts';
import type { Call } from './verdict.ts';

const TOKEN = 'the-token-of-this-chaos';
const AGAIN_MS = 500;

export type Gateway = Slot & {
  readonly url: string;
  ready(): Promise<void>;
  /** Sends a trainer's update of its policy, repeatedly until the gateway accepts it. */
  putPolicy(change: Readonly<Record<string, string>>): Promise<void>;
};

/** Starts the gateway. A replacement listens at the same address. */
export function startGateway(
  port: number,
  flags: readonly string[],
  env: Readonly<Record<string, string>>,
): Gateway {
  const own = { ...env, ...TELLS_LISTENING, SWEFARM_GATEWAY_TOKEN: TOKEN };
  const slot = openSlot(() => startCommand('swefarm', words`serve --port ${port} ${flags}`, own));
  slot.start();
  const url = `http://127.0.0.1:${port}`;
  return {
    ...slot,
    url,
    ready: () => slot.current().until(/"url"/),
    async putPolicy(change) {
      for (;;) {
        const reply = await post(`${url}/policy`, 'PUT', change).catch(() => null);
        if (reply?.ok) return void (await reply.arrayBuffer());
        await sleep(AGAIN_MS);
      }
    },
  };
}

const post = (url: string, method: string, body: unknown, signal?: AbortSignal): Promise<Response> =>
  fetch(url, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });

type Answer = { response: { id: string }; reward: number; _ng_failure_class?: string };

/** Posts the row until the status is 200, as Gym's callers do. `signal` ends the tries. */
export async function callRun(
  url: string,
  row: Readonly<Record<string, unknown>>,
  name: string,
  signal: AbortSignal,
): Promise<Call> {
  const body = {
    ...row,
    responses_create_params: { input: [] },
    _ng_rollout_id: name,
    _ng_task_index: 0,
    _ng_rollout_index: 0,
  };
  let last = 'no answer';
  while (!signal.aborted) {
    try {
      const reply = await post(`${url}/run`, 'POST', body, signal);
      const text = await reply.text();
      if (reply.status === 200) {
        const answer = JSON.parse(text) as Answer;
        const failed = answer._ng_failure_class ?? null;
        return { name, rollout_id: answer.response.id.replace(/^resp_/, ''), reward: answer.reward, failed };
      }
      last = `${reply.status} ${text.slice(0, 200)}`;
    } catch (error) {
      last = error instanceof Error ? `${error.message} ${String(error.cause ?? '')}` : String(error);
    }
    await sleep(AGAIN_MS);
  }
  return { name, rollout_id: null, reward: null, failed: last };
}
