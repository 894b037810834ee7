/**
 * Routes of sessions: a trainer's agent loop opens a session, sends inputs one at a time (sessioninputs.ts), and submits. All requests are
 * idempotent. Inputs and heartbeats renew the lease of the session. When the lease expires, the sandbox of the session is removed.
 */
import { type Farm, SessionState } from '@swefarm/shared';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import { findCaller } from '../access/callers.ts';
import { requireInstanceAllowed, requireWithinCeilings } from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { describeSession, openSession, SessionRequest, sessionIdOf } from '../sessions/open.ts';
import { awaitVerdict, SessionVerdict } from '../sessions/result.ts';
import { documented } from './answers.ts';
import { requireSession, SessionParams, unknownSession, WaitSeconds, whileConnected } from './giveinput.ts';

const SubmitRequest = z.strictObject({ wait_s: WaitSeconds }).prefault({});

const HeartbeatRequest = z.strictObject({ session_ids: z.array(z.string()).max(10_000) });

const OpenedSession = SessionState.extend({
  limits: z.object({ step_timeout: z.number(), step_limit: z.number(), time_limit: z.number() }),
});

const SessionWithVerdict = SessionState.extend({ result: SessionVerdict.nullable() });

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
