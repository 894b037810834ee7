/** A driver of sessions: calls to the gateway's routes as a trainer's own agent loop makes them. */

import { expect } from 'vitest';
import { type Started, startCommand } from '../../src/launchers/commands.ts';

export type Reply = { status: number; body: Record<string, never> & { [key: string]: unknown } };
export type Call = (method: string, path: string, body?: unknown) => Promise<Reply>;

export const SESSION_TOKEN = 'a-token-of-this-test';

/** Calls of the routes below `/v1/sessions`. */
export function caller(url: string): Call {
  return async (method, path, body) => {
    const reply = await fetch(`${url}/v1/sessions${path}`, {
      method,
      headers: {
        authorization: `Bearer ${SESSION_TOKEN}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: reply.status, body: (await reply.json()) as Reply['body'] };
  };
}

/** Repeats a call until it has more to say than that it waits, as a driver does. */
export async function patiently(call: () => Promise<Reply>): Promise<Reply['body']> {
  for (;;) {
    const { status, body } = await call();
    expect(status, JSON.stringify(body)).toBe(200);
    if (body.state !== 'waiting' && body.state !== 'grading') return body;
  }
}

export async function startWorker(name: string, env: Record<string, string>): Promise<Started> {
  const worker = startCommand('swefarm-worker', ['run', '--worker-id', name], env);
  await worker.until(/"msg":"ready"/);
  return worker;
}
