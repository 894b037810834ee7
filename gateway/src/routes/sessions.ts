/**
 * Routes of sessions: a trainer's agent loop opens a session, sends commands one at a time, and submits. All requests are idempotent.
 * Commands and heartbeats renew the lease of the session. When the lease expires, the sandbox of the session is removed.
 */
import { type Farm, type PostedCommand, SessionState } from '@swefarm/shared';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { findCaller } from '../access/callers.ts';
import { requireInstanceAllowed, requireWithinCeilings } from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { describeSession, openSession, SessionRequest, sessionIdOf } from '../sessions/open.ts';
import { awaitVerdict } from '../sessions/result.ts';
import { OF_BODY, refusals } from './answers.ts';
import {
  AliveSessions,
  CommandReply,
  CommandRequest,
  HeartbeatRequest,
  OpenedSession,
  SessionAlive,
  SessionParams,
  SessionWithVerdict,
  SubmitReply,
  SubmitRequest,
} from './sessionschemas.ts';

const tags = ['sessions'];

export function sessionRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const { farm } = deps;
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    '/v1/sessions',
    {
      schema: {
        tags,
        summary: 'Open a session; the same request_id is the same session',
        body: SessionRequest,
        response: { 200: OpenedSession, ...refusals(...OF_BODY, 404, 409, 422) },
      },
    },
    (request) => open(deps, request),
  );
  typed.get(
    '/v1/sessions/:id',
    {
      schema: {
        tags,
        summary: 'State of a session, and its result when there is one',
        params: SessionParams,
        response: { 200: SessionWithVerdict, ...refusals(400, 404) },
      },
    },
    async ({ params }) => {
      const state = await requireSession(farm, params.id);
      return { ...state, result: await awaitVerdict(farm, state.rollout_id, 0, deps.signal) };
    },
  );
  typed.delete(
    '/v1/sessions/:id',
    {
      schema: {
        tags,
        summary: 'Cancel a session',
        params: SessionParams,
        response: { 200: SessionState, ...refusals(400, 404) },
      },
    },
    ({ params }) => cancel(farm, params.id),
  );
  commandRoutes(app, deps);
  heartbeatRoutes(app, deps);
}

function commandRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    '/v1/sessions/:id/commands',
    {
      schema: {
        tags,
        summary: 'Give a command and wait for its answer',
        params: SessionParams,
        body: CommandRequest,
        response: { 200: CommandReply, ...refusals(...OF_BODY, 404, 409, 410) },
      },
    },
    ({ params, body }, reply) => runCommand(deps, params.id, body, reply),
  );
  typed.post(
    '/v1/sessions/:id/submit',
    {
      schema: {
        tags,
        summary: 'Submit the tree as the solution and wait for the result',
        params: SessionParams,
        body: SubmitRequest,
        response: { 200: SubmitReply, ...refusals(...OF_BODY, 404) },
      },
    },
    ({ params, body }, reply) => submit(deps, params.id, body.wait_s, reply),
  );
}

function heartbeatRoutes(app: FastifyInstance, { farm }: GatewayDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.post(
    '/v1/sessions/heartbeat',
    {
      schema: {
        tags,
        summary: 'Renew the leases of many sessions',
        body: HeartbeatRequest,
        response: { 200: AliveSessions, ...refusals(...OF_BODY) },
      },
    },
    async ({ body }) => ({ alive: await farm.sessions.renew(body.session_ids) }),
  );
  typed.post(
    '/v1/sessions/:id/heartbeat',
    {
      schema: {
        tags,
        summary: 'Renew the lease of a session',
        params: SessionParams,
        response: { 200: SessionAlive, ...refusals(...OF_BODY) },
      },
    },
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
  const options = { field: 'seq' };
  switch (posted.status) {
    case 'gone':
      throw unknownSession(id);
    case 'differs':
      throw new Refusal(409, 'seq_differs', `seq: another command has the number ${seq}`, options);
    case 'gap':
      throw new Refusal(
        409,
        'seq_gap',
        `seq: expected ${posted.posted + 1}: the session has ${posted.posted} commands`,
        options,
      );
    case 'forgotten':
      throw new Refusal(410, 'seq_forgotten', `seq: the answer to command ${seq} has expired`, options);
    default:
  }
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
  const closed = new AbortController();
  const onClose = (): void => closed.abort();
  reply.raw.once('close', onClose);
  const timer = setInterval(() => void farm.sessions.renew([id]).catch(() => undefined), RENEW_MS);
  const signal = AbortSignal.any([stopping, closed.signal]);
  try {
    return await wait(signal);
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  } finally {
    clearInterval(timer);
    reply.raw.off('close', onClose);
  }
}
