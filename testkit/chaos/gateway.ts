/** The gateway as a process that may be killed, and callers that post a row again until it is answered. */
import { sleep } from '@swefarm/shared';
import { type Started, startCommand } from '../src/launchers/commands.ts';
import { TELLS_LISTENING, untilListens } from '../src/launchers/listens.ts';
import type { Call } from './verdict.ts';

const TOKEN = 'the-token-of-this-chaos';
const AGAIN_MS = 500;

export type Gateway = {
  readonly url: string;
  ready(): Promise<void>;
  /** kill -9, and up again at the same address after `downMs`. */
  replace(downMs: number): Promise<void>;
  /** What a trainer says of its policy; repeated until it is heard. */
  putPolicy(change: Readonly<Record<string, string>>): Promise<void>;
  drain(): Promise<number | string>;
  log(): string;
  kill(): void;
};

export function startGateway(
  port: number,
  flags: readonly string[],
  env: Readonly<Record<string, string>>,
): Gateway {
  const all: Started[] = [];
  const start = (): void => {
    const args = ['serve', '--port', String(port), ...flags];
    all.push(startCommand('swefarm', args, { ...env, ...TELLS_LISTENING, SWEFARM_GATEWAY_TOKEN: TOKEN }));
  };
  const current = (): Started => {
    const last = all.at(-1);
    if (last) return last;
    throw new Error('the gateway was not started');
  };
  start();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    ready: () => current().until(/"url"/),
    async replace(downMs) {
      current().kill('SIGKILL');
      await current().exit;
      await sleep(downMs);
      start();
    },
    async putPolicy(change) {
      for (;;) {
        const reply = await post(`${url}/policy`, 'PUT', change).catch(() => null);
        if (reply?.ok) return void (await reply.arrayBuffer());
        await sleep(AGAIN_MS);
      }
    },
    async drain() {
      // One that was started a moment ago has no code loaded that could handle a signal.
      await untilListens(current());
      current().kill('SIGTERM');
      return await current().exit;
    },
    log: () => all.map((started) => started.stdout() + started.stderr()).join('\n'),
    kill: () => current().kill('SIGKILL'),
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

/** Posts the row until a 200 comes, as Gym's callers do; `signal` is the end of their patience. */
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
