/** A driver of sessions: calls the gateway's routes as a trainer's own agent loop does. */

import { expect } from 'vitest';
import { gatewayUrl, type Started } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { callerOf, openScene, type Scene } from './scene.ts';

type Body = Record<string, never> & { [key: string]: unknown };
type Reply = { status: number; body: Body };

const TOKEN = 'a-token-of-this-test';

export type Sessions = {
  scene: Scene;
  gateway: Started;
  /** Calls a route below `/v1/sessions`. */
  call(method: string, path: string, body?: unknown): Promise<Reply>;
  /** Opens a session, and returns its id. */
  open(request_id: string, instance: unknown, more?: object): Promise<string>;
  run(id: string, seq: number, command: string): Promise<Body>;
  submit(id: string): Promise<Body>;
};

/** Starts a Redis and a gateway, without a worker. The environment of the scene also suits workers on rootfs. */
export async function startSessions(stack: AsyncDisposableStack, concurrency: number): Promise<Sessions> {
  const redis = stack.use(await startRedis());
  const scene = openScene({
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: String(concurrency),
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  });
  const gateway = stack.use(scene.start`serve --port 0`);
  const url = await gatewayUrl(gateway);
  const ask = callerOf(`${url}/v1/sessions`, TOKEN);
  const call: Sessions['call'] = async (...request) => {
    const reply = await ask(...request);
    return { status: reply.status, body: (await reply.json()) as Body };
  };
  return {
    scene,
    gateway,
    call,
    async open(request_id, instance, more = {}) {
      const { status, body } = await call('POST', '', { request_id, instance, ...more });
      expect(status, JSON.stringify(body)).toBe(200);
      return String(body.session_id);
    },
    run: (id, seq, command) => patiently(() => call('POST', `/${id}/commands`, { seq, command, wait_s: 20 })),
    submit: (id) => patiently(() => call('POST', `/${id}/submit`, { wait_s: 20 })),
  };
}

/** Repeats a call until its state is neither `waiting` nor `grading`, as a driver does. */
async function patiently(call: () => Promise<Reply>): Promise<Body> {
  for (;;) {
    const { status, body } = await call();
    expect(status, JSON.stringify(body)).toBe(200);
    if (body.state !== 'waiting' && body.state !== 'grading') return body;
  }
}
