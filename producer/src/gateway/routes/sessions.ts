/**
 * Sessions over HTTP: a trainer's own agent loop opens one, gives commands one by one, and submits. Every call may be
 * repeated; every call and every heartbeat renews the lease, and without them the sandbox goes.
 */
import type { Farm, PostedCommand, SessionState } from '@swefarm/shared';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { describeSession, openSession, SessionRequest, sessionIdOf } from '../../sessions/open.ts';
import { awaitVerdict } from '../../sessions/result.ts';
import { findCaller } from '../access/callers.ts';
import { requireNetworkAllowed, requireWithinCeilings } from '../access/ceilings.ts';
import type { GatewayDeps, RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';

const Id = z.object({ id: z.string().regex(/^[a-z][0-9a-z]{3,40}$/) });
/** Seconds a call waits before it answers that there is nothing yet; the caller then repeats it. */
const Wait = z.number().min(0).max(600).default(60);
const CommandBody = z.strictObject({
  /** Counted by the driver from 1, without gaps. */
  seq: z.number().int().positive(),
  command: z.string().max(1_000_000),
  timeout_s: z.number().positive().optional(),
  wait_s: Wait,
});
const SubmitBody = z.strictObject({ wait_s: Wait }).prefault({});
const HeartbeatBody = z.strictObject({ session_ids: z.array(z.string()).max(10_000) });

export function sessionRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const { farm } = deps;
  const routes = app.withTypeProvider<ZodTypeProvider>();
  const { sessions } = farm;

  routes.post('/v1/sessions', { schema: { body: SessionRequest } }, async (request) => {
    const caller = findCaller(request);
    const known = await sessions.state(sessionIdOf(caller.name, request.body.request_id));
    const { session_id, record } = await deps.quota.admit(caller, known ? 0 : 1, async () => {
      const session = await describeSession(farm, request.body, caller);
      requireWithinCeilings(session.record, deps.config, '');
      requireNetworkAllowed(session.instance, deps.config, 'instance.needs_egress');
      await openSession(farm, session);
      return { value: session, booked: { ...session.record, rollouts: 1 } };
    });
    const state = await stateOf(farm, session_id);
    const { step_timeout, step_limit, time_limit } = record.agent;
    return { ...state, limits: { step_timeout, step_limit, time_limit } };
  });

  routes.get('/v1/sessions/:id', { schema: { params: Id } }, async ({ params }) => {
    const state = await stateOf(farm, params.id);
    return { ...state, result: await awaitVerdict(farm, state.rollout_id, 0, deps.signal) };
  });

  routes.post(
    '/v1/sessions/:id/commands',
    { schema: { params: Id, body: CommandBody } },
    async ({ params: { id }, body }, reply) => {
      const word = { kind: 'command' as const, command: body.command, timeout: body.timeout_s ?? null };
      const said = await sessions.say(id, body.seq, word);
      if (said.status === 'ended' || said.status === 'submitted') return await endOf(farm, id);
      refuse(said, id, body.seq);
      const heard = await whileCalled(deps, id, reply, (signal) =>
        sessions.answer(id, body.seq, body.wait_s * 1000, signal),
      );
      if (heard?.status === 'answer') return { state: 'answered', ...heard.answer };
      if (heard === null || heard.status === 'waiting') return { state: 'waiting', seq: body.seq };
      return await endOf(farm, id);
    },
  );

  routes.post(
    '/v1/sessions/:id/submit',
    { schema: { params: Id, body: SubmitBody } },
    async ({ params: { id }, body }, reply) => {
      const state = await stateOf(farm, id);
      if (state.end === null) {
        const said = await sessions.say(id, 0, { kind: 'submit' });
        if (said.status === 'gone') throw unknown(id);
      }
      const result = await whileCalled(deps, id, reply, (signal) =>
        awaitVerdict(farm, state.rollout_id, body.wait_s * 1000, signal),
      );
      return result ? { state: 'ended', result } : { state: 'grading' };
    },
  );

  routes.post('/v1/sessions/heartbeat', { schema: { body: HeartbeatBody } }, async ({ body }) => ({
    alive: await sessions.renew(body.session_ids),
  }));

  routes.post('/v1/sessions/:id/heartbeat', { schema: { params: Id } }, async ({ params: { id } }) => ({
    alive: (await sessions.renew([id])).length === 1,
  }));

  routes.delete('/v1/sessions/:id', { schema: { params: Id } }, async ({ params: { id } }) => {
    const state = await stateOf(farm, id);
    if (state.state !== 'ended') await farm.cancel.cancelRollouts([state.rollout_id]);
    await sessions.end(id, 'cancelled');
    return await stateOf(farm, id);
  });
}

async function stateOf(farm: Farm, id: string): Promise<SessionState> {
  const state = await farm.sessions.state(id);
  if (!state) throw unknown(id);
  return state;
}

/** No more commands are taken: why, and the result when it is there already. */
async function endOf(farm: Farm, id: string) {
  const { rollout_id, end } = await stateOf(farm, id);
  const now = new AbortController().signal;
  return { state: 'ended', end, result: await awaitVerdict(farm, rollout_id, 0, now) };
}

function refuse(said: PostedCommand, id: string, seq: number): void {
  const at = { field: 'seq' };
  switch (said.status) {
    case 'gone':
      throw unknown(id);
    case 'differs':
      throw new Refusal(409, 'seq_differs', `seq: command ${seq} was another one`, at);
    case 'gap':
      throw new Refusal(409, 'seq_gap', `seq: expected ${said.said + 1}, for ${said.said} were said`, at);
    case 'forgotten':
      throw new Refusal(410, 'seq_forgotten', `seq: the answer to command ${seq} is kept no more`, at);
    default:
  }
}

const unknown = (id: string): Refusal =>
  new Refusal(404, 'session_unknown', `no session ${id}: it was never opened here, or is over for long`, {
    field: 'id',
  });

const RENEW_MS = 1_000;

/** Waits for `wait` while the caller does, which keeps the lease; null when either of us goes away first. */
async function whileCalled<T>(
  { farm, signal: stop }: GatewayDeps,
  id: string,
  reply: FastifyReply,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const gone = new AbortController();
  const hangUp = () => gone.abort();
  reply.raw.once('close', hangUp);
  const timer = setInterval(() => void farm.sessions.renew([id]).catch(() => undefined), RENEW_MS);
  const signal = AbortSignal.any([stop, gone.signal]);
  try {
    return await wait(signal);
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  } finally {
    clearInterval(timer);
    reply.raw.off('close', hangUp);
  }
}
