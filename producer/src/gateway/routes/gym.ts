/** NeMo Gym's agent and environment server: a row comes in, and the answer when its rollout is done, hours later perhaps. */
import { Readable } from 'node:stream';
import { UnusableError } from '@swefarm/shared';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { AggregateRequest, aggregate } from '../../formats/gym/aggregate.ts';
import { answerPieces } from '../../formats/gym/answer.ts';
import { globalConfig } from '../../formats/gym/entries.ts';
import { episodeFailure, episodePieces } from '../../formats/gym/episode.ts';
import { GymRunRequest } from '../../formats/gym/request.ts';
import { tokenOf } from '../access/authentication.ts';
import { type Caller, callerOf } from '../access/callers.ts';
import { holdInstance } from '../access/ceilings.ts';
import type { RouteDeps } from '../access/deps.ts';
import { digest } from '../access/digest.ts';
import { Refusal, settingsRefusal } from '../access/refusal.ts';
import { createOutcomes, type Served, Unserved } from '../calls/callanswer.ts';
import { type Hold, heldCall, Superseded, whenClosed } from '../calls/callconnection.ts';
import { readCallerRun, requestedInstance } from '../calls/callerrun.ts';
import { fingerprint, nameOf, promptOf } from '../calls/callidentity.ts';
import { type CallIdentity, createCallDesk, type Found } from '../calls/calltracker.ts';
import { honoursMask, type Mode, modeOf, trains } from '../calls/failuremode.ts';
import { type CallerRun, createOpenRuns } from '../calls/openruns.ts';
import { createCohorts } from '../calls/siblings.ts';
import { createSlots } from '../calls/slots.ts';

/** The entry's name in Gym's configuration when no caller gives another one. */
const ENTRY = 'swe_farm';
/** Answers that are read and written at once: each takes some megabytes from when its artifact is decoded. */
const WRITERS = 16;
/** A client that takes nothing for so long is gone. */
const STALLED_MS = 120_000;

/** A request that was read, until it is answered. */
type Call = GymRunRequest & {
  caller: Caller;
  mode: Mode;
  wish: CallerRun;
  asked: CallIdentity;
  /** What it shares with its siblings, where they are waited for. */
  prompt: string | null;
  reply: FastifyReply;
  hold: Hold;
};

export function gymRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const { farm, config, log, signal } = deps;
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const runs = createOpenRuns(farm, config, log);
  const desk = createCallDesk(app, deps, runs);
  const outcomes = createOutcomes(deps, desk);
  const cohorts = createCohorts(config.gateway_grace_seconds * 1000);
  const writers = createSlots(WRITERS);
  const said = new Set<string>();

  app.get('/', async () => ({ status: 'ok', agent: ENTRY }));

  app.get('/global_config_dict_yaml', async (request) => {
    const names = request.callers.map((caller) => caller.entry ?? ENTRY);
    return globalConfig([...new Set(names)], addressFor(request));
  });

  typed.post('/aggregate_metrics', { schema: { body: AggregateRequest } }, async (request) =>
    aggregate(request.body.verify_responses),
  );

  app.post('/v1/responses', async () => {
    throw new Refusal(501, 'not_implemented', 'this agent runs whole rollouts: post the row to /run');
  });

  typed.post('/run', { schema: { body: GymRunRequest } }, async (request, reply) => {
    const { body } = request;
    const { row } = body;
    const caller = callerOf(request, row.agent_ref?.name);
    const mode = modeOf(caller, body);
    if (caller.failures === 'auto' && !said.has(`${caller.name} ${mode}`)) {
      said.add(`${caller.name} ${mode}`);
      log.info({ caller: caller.name, mode }, 'failures of this caller are answered in this mode (auto)');
    }
    const instance = requestedInstance(row, deps);
    holdInstance(instance, config, 'needs_egress');
    const wish = readCallerRun(caller, mode, row, deps);
    const asked = askedOf(request, body, { caller, mode, wish });
    // What is needed later is held by us: not the row twice.
    (request as { body: unknown }).body = undefined;
    const limits = {
      maxHoldSeconds: caller.maxHoldSeconds,
      timeoutSeconds: row.rollout_timeout_s ?? null,
    };
    const hold = heldCall(reply, desk, asked, limits, signal);
    const prompt = mode === 'nemo-rl' ? fingerprint([caller.name, runs.nameOf(wish), promptOf(row)]) : null;
    const call = { ...body, caller, mode, wish, asked, prompt, reply, hold };
    try {
      hold.gone.throwIfAborted();
      const taken = asked.named ? null : cohorts.takeUp(asked.fingerprint);
      const found = taken ?? (await foundFor(call, instance));
      await hold.has(found);
      log.debug({ rollout_id: found.rolloutId, caller: caller.name, attached: found.attached }, 'call held');
      return await answer(call, found, instance.repo);
    } catch (error) {
      if (hold.gone.reason instanceof Superseded) throw hold.gone.reason;
      if (hold.gone.aborted) return leave(reply);
      // Its rollout goes on: whoever asks again takes it up.
      if (error instanceof UnusableError) hold.lost();
      // Whatever the refusal, the stream of its siblings ends by it; a failure has told them itself.
      const held = prompt !== null && !(error instanceof Unserved) && !(error instanceof Superseded);
      if (held) cohorts.release(prompt, asked.fingerprint);
      throw error;
    } finally {
      hold.done();
    }
  });

  async function foundFor({ asked, wish, hold }: Call, instance: Parameters<typeof desk.find>[2]) {
    try {
      return await desk.find(asked, wish, instance, hold.gone);
    } catch (error) {
      throw settingsRefusal(error, '', IN_ROW);
    }
  }

  /** Waits for the rollout and answers; a failure of one that has siblings is told after them. */
  async function answer(call: Call, found: Found, repo: string): Promise<FastifyReply> {
    const { caller, mode, prompt, asked, reply, hold } = call;
    const member = { found, fingerprint: asked.fingerprint, supersede: hold.supersede };
    const seat = prompt === null ? null : cohorts.join(prompt, member);
    if (seat) whenClosed(reply, seat.leave);
    try {
      const terms = { mode, honoursMask: honoursMask(caller, mode) };
      const served = await outcomes.of(found, terms, hold, () => writerFor(call));
      if (seat && !seat.decide()) throw new Superseded();
      return send(call, served, repo);
    } catch (error) {
      if (!(error instanceof Unserved)) throw error;
      const { kept } = error;
      if (kept.kind === 'passing') {
        hold.forget();
        const latest = Date.now() + config.gateway_group_hold_seconds * 1000;
        await seat?.last(Math.min(hold.until, latest), hold.gone);
      }
      seat?.release();
      if (call.episode) return reply.send(episodeFailure(call.episode, kept, trains(mode)));
      throw error;
    }
  }

  async function writerFor({ reply, hold }: Call): Promise<() => void> {
    const release = await writers.take(hold.gone);
    whenClosed(reply, release);
    return release;
  }

  function send(call: Call, served: Served, repo: string): FastifyReply {
    const { row, episode, caller, mode, reply, hold } = call;
    const { cause, unjudged, found } = served;
    if (unjudged?.shown === 'failure' && !unjudged.terminal) hold.forget();
    if (episode && cause && unjudged?.shown === 'failure') {
      return reply.send(episodeFailure(episode, cause, trains(mode)));
    }
    const pieces = answerPieces({
      ...served,
      row,
      repo,
      evaluationTimeout: found.run.evaluation.timeout,
      trajectory: caller.trajectory && !trains(mode) && episode === null,
    });
    const text = episode ? episodePieces(episode, pieces) : pieces;
    reply.raw.setTimeout(STALLED_MS, () => reply.raw.destroy());
    reply.raw.once('finish', () => reply.raw.setTimeout(0));
    return reply.type('application/json').send(Readable.from(text, { highWaterMark: 4 }));
  }

  function askedOf(
    request: FastifyRequest,
    body: GymRunRequest,
    { caller, mode, wish }: Pick<Call, 'caller' | 'mode' | 'wish'>,
  ): CallIdentity {
    const name = nameOf(request, body);
    const row = digest(body.row);
    // No version of a policy: weights move while a row is away, and what was answered is kept for no row without a name.
    const parts = name === null ? [caller.name, runs.nameOf(wish), row] : [caller.name, name, row];
    const seconds = trains(mode) ? config.gateway_grace_seconds : config.gateway_collector_grace_seconds;
    return { named: name !== null, fingerprint: fingerprint(parts), graceMs: seconds * 1000 };
  }
}

const IN_ROW = { url: 'policy_base_url', model: 'policy_model_name' };

/** The connection is closed: there is nobody to answer. */
function leave(reply: FastifyReply): FastifyReply {
  return reply.hijack();
}

/** Where the caller reached us, with its token as part of the host, which is all that Gym's clients can carry. */
function addressFor(request: FastifyRequest): { host: string; port: number } {
  const token = tokenOf(request);
  const credentials = token === null ? '' : `farm:${encodeURIComponent(token)}@`;
  const url = new URL(`http://${request.headers.host ?? request.hostname}`);
  return { host: `${credentials}${url.hostname}`, port: Number(url.port || 80) };
}
