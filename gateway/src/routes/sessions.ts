/**
 * Routes of sessions: a trainer's agent loop opens a session, sends commands one at a time, and submits. All requests are idempotent.
 * Commands and heartbeats renew the lease of the session. When the lease expires, the sandbox of the session is removed.
 */
import { type Farm, type PostedCommand, SessionAnswer, SessionEnd, SessionState } from '@swefarm/shared';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import { findCaller } from '../access/callers.ts';
import { requireInstanceAllowed, requireWithinCeilings } from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { closedSignal } from '../calls/callconnection.ts';
import { describeSession, openSession, SessionRequest, sessionIdOf } from '../sessions/open.ts';
import { awaitVerdict, SessionVerdict } from '../sessions/result.ts';
import { documented } from './answers.ts';

const SessionParams = z.object({ id: z.string().regex(/^[a-z][0-9a-z]{3,40}$/) });

const WaitSeconds = z.number().min(0).max(600).default(60).meta({
  description:
    'how long the call waits before it answers that there is nothing yet; the caller then repeats it',
});

const CommandRequest = z.strictObject({
  seq: z.number().int().positive().meta({ description: 'counted by the caller from 1, without gaps' }),
  command: z.string().max(1_000_000),
  timeout_s: z.number().positive().optional(),
  wait_s: WaitSeconds,
});

const SubmitRequest = z.strictObject({ wait_s: WaitSeconds }).prefault({});

const HeartbeatRequest = z.strictObject({ session_ids: z.array(z.string()).max(10_000) });

const OpenedSession = SessionState.extend({
  limits: z.object({ step_timeout: z.number(), step_limit: z.number(), time_limit: z.number() }),
});

const SessionWithVerdict = SessionState.extend({ result: SessionVerdict.nullable() });

const CommandReply = z.union([
  SessionAnswer.extend({ state: z.literal('answered') }),
  z.object({ state: z.literal('waiting'), seq: z.number().int() }),
  z.object({ state: z.literal('ended'), end: SessionEnd.nullable(), result: SessionVerdict.nullable() }),
]);

const SubmitReply = z.union([
  z.object({ state: z.literal('ended'), result: SessionVerdict }),
  z.object({ state: z.literal('grading') }),
]);

const AliveSessions = z.object({ alive: z.array(z.string()) });
const SessionAlive = z.object({ alive: z.boolean() });

export function sessionRoutes(app: App, deps: RouteDeps): void {
  const { farm } = deps;
  const params = SessionParams;
  const summary = 'Open a session; the same request_id is the same session';
  app.post(
    '/v1/sessions',
    documented(summary, OpenedSession, { body: SessionRequest }, 404, 409, 422),
    (request) => open(deps, request),
  );
  app.get(
    '/v1/sessions/:id',
    documented('State of a session, and its result when there is one', SessionWithVerdict, { params }, 404),
    async (request) => {
      const state = await requireSession(farm, request.params.id);
      return { ...state, result: await awaitVerdict(farm, state.rollout_id, 0, deps.signal) };
    },
  );
  app.delete('/v1/sessions/:id', documented('Cancel a session', SessionState, { params }, 404), (request) =>
    cancel(farm, request.params.id),
  );
  const command = { params, body: CommandRequest };
  app.post(
    '/v1/sessions/:id/commands',
    documented('Give a command and wait for its answer', CommandReply, command, 404, 409, 410),
    (request, reply) => runCommand(deps, request.params.id, request.body, reply),
  );
  const submission = { params, body: SubmitRequest };
  app.post(
    '/v1/sessions/:id/submit',
    documented('Submit the tree as the solution and wait for the result', SubmitReply, submission, 404),
    (request, reply) => submit(deps, request.params.id, request.body.wait_s, reply),
  );
  app.post(
    '/v1/sessions/heartbeat',
    documented('Renew the leases of many sessions', AliveSessions, { body: HeartbeatRequest }),
    async ({ body }) => ({ alive: await farm.sessions.renew(body.session_ids) }),
  );
  app.post(
    '/v1/sessions/:id/heartbeat',
    documented('Renew the lease of a session', SessionAlive, { params }, 413, 415),
    async ({ params: { id } }) => ({ alive: (await farm.sessions.renew([id])).length === 1 }),
  );
}

async function open(
  deps: RouteDeps,
  request: FastifyRequest & { body: SessionRequest },
): Promise<z.infer<typeof OpenedSession>> {
  const { farm, config } = deps;
  const caller = findCaller(request);
  const known = await farm.sessions.state(sessionIdOf(caller.name, request.body.request_id));
  const session = await deps.quota.admit(caller, known ? 0 : 1, async () => {
    const value = await describeSession(deps, request.body, caller);
    requireWithinCeilings(value.record, config, '');
    requireInstanceAllowed(value.instance, config, 'instance.');
    await openSession(farm, value);
    return { value, booked: { ...value.record, rollouts: 1 } };
  });
  const state = await requireSession(farm, session.session_id);
  const { step_timeout, step_limit, time_limit } = session.record.agent;
  return { ...state, limits: { step_timeout, step_limit, time_limit } };
}

async function cancel(farm: Farm, id: string): Promise<SessionState> {
  const state = await requireSession(farm, id);
  if (state.state !== 'ended') await farm.cancel.cancelRollouts([state.rollout_id]);
  await farm.sessions.end(id, 'cancelled');
  return await requireSession(farm, id);
}

async function runCommand(
  deps: GatewayDeps,
  id: string,
  { seq, command, timeout_s, wait_s }: z.infer<typeof CommandRequest>,
  reply: FastifyReply,
): Promise<z.infer<typeof CommandReply>> {
  const { farm } = deps;
  const posted = await farm.sessions.post(id, seq, { kind: 'command', command, timeout: timeout_s ?? null });
  if (posted.status === 'ended' || posted.status === 'submitted') return await describeEnd(farm, id);
  requirePosted(posted, id, seq);
  const answer = await whileConnected(deps, id, reply, (signal) =>
    farm.sessions.answer(id, seq, wait_s * 1000, signal),
  );
  if (answer?.status === 'answer') return { state: 'answered', ...answer.answer };
  if (answer === null || answer.status === 'waiting') return { state: 'waiting', seq };
  return await describeEnd(farm, id);
}

async function submit(
  deps: GatewayDeps,
  id: string,
  waitSeconds: number,
  reply: FastifyReply,
): Promise<z.infer<typeof SubmitReply>> {
  const { farm } = deps;
  const state = await requireSession(farm, id);
  if (state.end === null) {
    const posted = await farm.sessions.post(id, 0, { kind: 'submit' });
    if (posted.status === 'gone') throw unknownSession(id);
  }
  const result = await whileConnected(deps, id, reply, (signal) =>
    awaitVerdict(farm, state.rollout_id, waitSeconds * 1000, signal),
  );
  return result ? { state: 'ended', result } : { state: 'grading' };
}

async function requireSession(farm: Farm, id: string): Promise<SessionState> {
  const state = await farm.sessions.state(id);
  if (!state) throw unknownSession(id);
  return state;
}

/** Returns the answer for a session that accepts no more commands. */
async function describeEnd(farm: Farm, id: string) {
  const { rollout_id, end } = await requireSession(farm, id);
  const noSignal = new AbortController().signal;
  return { state: 'ended' as const, end, result: await awaitVerdict(farm, rollout_id, 0, noSignal) };
}

function requirePosted(posted: PostedCommand, id: string, seq: number): void {
  const refuse = (status: number, code: string, text: string): Refusal =>
    new Refusal(status, code, `seq: ${text}`, { field: 'seq' });
  if (posted.status === 'gone') throw unknownSession(id);
  if (posted.status === 'differs') throw refuse(409, 'seq_differs', `another command has the number ${seq}`);
  if (posted.status === 'forgotten')
    throw refuse(410, 'seq_forgotten', `the answer to command ${seq} has expired`);
  if (posted.status !== 'gap') return;
  const { posted: count } = posted;
  throw refuse(409, 'seq_gap', `expected ${count + 1}: the session has ${count} commands`);
}

const unknownSession = (id: string): Refusal =>
  new Refusal(404, 'session_unknown', `unknown session ${id}: it was never opened, or ended long ago`, {
    field: 'id',
  });

const RENEW_MS = 1_000;

/** Runs `wait` and renews the lease meanwhile. Returns null if the caller disconnects or the gateway stops before `wait` ends. */
async function whileConnected<T>(
  { farm, signal: stopping }: GatewayDeps,
  id: string,
  reply: FastifyReply,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const signal = AbortSignal.any([stopping, closedSignal(reply)]);
  const timer = setInterval(() => void farm.sessions.renew([id]).catch(() => undefined), RENEW_MS);
  try {
    return await wait(signal);
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  } finally {
    clearInterval(timer);
  }
}
