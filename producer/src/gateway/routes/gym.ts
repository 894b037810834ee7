/** NeMo Gym's agent and environment server: a row comes in, and the answer when its rollout is done, hours later perhaps. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ArtifactContent,
  decodeArtifact,
  errorMessage,
  type Result,
  SwefarmError,
  UnusableError,
} from '@swefarm/shared';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { AggregateRequest, aggregate } from '../../formats/gym/aggregate.ts';
import { answerPieces, hasTrainedTurn, type Unjudged } from '../../formats/gym/answer.ts';
import { type Cause, causeOf } from '../../formats/gym/cause.ts';
import { globalConfig } from '../../formats/gym/entries.ts';
import { GymRow } from '../../formats/gym/row.ts';
import { type Caller, callerOf } from '../callers.ts';
import { type CallDesk, createCallDesk, type Found } from '../calls.ts';
import { holdInstance } from '../ceilings.ts';
import type { RouteDeps } from '../deps.ts';
import { digest } from '../digest.ts';
import { CONSEQUENCES, type Mode, modeOf, prefersMasked, trains } from '../failures.ts';
import { tokenOf } from '../guard.ts';
import { createOpenRuns } from '../openruns.ts';
import { createResultReaders } from '../reader.ts';
import { Refusal, settingsRefusal } from '../refusal.ts';
import { createSlots } from '../slots.ts';
import { requestedInstance, wishOf } from '../wish.ts';

/** The entry's name in Gym's configuration when no caller gives another one. */
const ENTRY = 'swe_farm';
/** Answers that are read and written at once: each takes some megabytes from when its artifact is decoded. */
const WRITERS = 16;
/** A client that takes nothing for so long is gone. */
const STALLED_MS = 120_000;
/** Between a failed rollout and its successor, when a call is held on. */
const RETRY_MS = { first: 5_000, longest: 60_000 };

type Served = { result: Result; content: ArtifactContent | null; unjudged: Unjudged | null; found: Found };

export function gymRoutes(app: FastifyInstance, deps: RouteDeps): void {
  const { farm, config, log, signal } = deps;
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const runs = createOpenRuns(farm, config);
  const desk = createCallDesk(app, deps, runs);
  const results = createResultReaders(farm, log, signal);
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

  typed.post('/run', { schema: { body: GymRow } }, async (request, reply) => {
    const row = request.body;
    const caller = callerOf(request, row.agent_ref?.name);
    const mode = modeOf(caller, row);
    if (caller.failures === 'auto' && !said.has(`${caller.name} ${mode}`)) {
      said.add(`${caller.name} ${mode}`);
      log.info({ caller: caller.name, mode }, 'failures of this caller are answered in this mode (auto)');
    }
    const instance = requestedInstance(row, deps);
    holdInstance(instance, config, 'needs_egress');
    const wish = wishOf(caller, mode, row, deps);
    const named = nameOf(request, row);
    const body = digest(row);
    const asked = {
      named: named !== null,
      fingerprint: fingerprint(
        named === null
          ? [caller.name, runs.nameOf(wish), await policyVersions(), body]
          : [caller.name, named, body],
      ),
    };
    // What is needed later is held by us: not the row twice.
    (request as { body: unknown }).body = undefined;
    const hold = heldCall(reply, desk, asked.named, caller, signal);
    const writer = async (): Promise<() => void> => {
      const release = await writers.take(hold.gone);
      reply.raw.once('close', release);
      return release;
    };
    let found: Found;
    try {
      found = await desk.find(asked, wish, instance, hold.gone);
    } catch (error) {
      if (hold.gone.aborted) return leave(reply);
      throw settingsRefusal(error, '', IN_ROW);
    }
    await hold.has(found.callId);
    log.debug({ rollout_id: found.rolloutId, caller: caller.name, attached: found.attached }, 'call held');
    try {
      const served = await outcomeOf(found, mode, hold, writer);
      found = served.found;
      const timeout = found.run.evaluation.timeout;
      const pieces = answerPieces({
        ...served,
        row,
        repo: instance.repo,
        evaluationTimeout: timeout,
        trajectory: caller.trajectory && !trains(mode),
      });
      reply.raw.setTimeout(STALLED_MS, () => reply.raw.destroy());
      reply.raw.once('finish', () => reply.raw.setTimeout(0));
      return await reply.type('application/json').send(Readable.from(pieces, { highWaterMark: 4 }));
    } catch (error) {
      if (hold.gone.aborted) return leave(reply);
      // Its rollout goes on: whoever asks again takes it up.
      if (error instanceof UnusableError) hold.lost();
      throw error;
    } finally {
      hold.done();
    }
  });

  /** A result, or what stands in its place for this caller, and a writer's slot with it. Throws Refusal 503. */
  async function outcomeOf(
    first: Found,
    mode: Mode,
    hold: Hold,
    writer: () => Promise<() => void>,
  ): Promise<Served> {
    let found = first;
    for (let pause = RETRY_MS.first; ; pause = Math.min(pause * 2, RETRY_MS.longest)) {
      const ended = await resultOf(found, mode, hold);
      const given = 'cause' in ended ? ended : await served(ended.result, found, mode, writer);
      if ('found' in given) return given;
      const { cause } = given;
      const left = hold.until - Date.now() - pause;
      if (!prefersMasked(mode) || left <= 0) throw unserved(cause, mode);
      log.info(
        { rollout_id: found.rolloutId, cause: cause.class },
        'held on: another rollout takes its place',
      );
      await hold.sleep(pause);
      const next = await desk.retry(found);
      if (!next) throw unserved(cause, mode);
      found = next;
    }
  }

  /** What is answered of a result, holding a writer's slot; else why it is no answer for this caller. */
  async function served(
    result: Result,
    found: Found,
    mode: Mode,
    writer: () => Promise<() => void>,
  ): Promise<Served | { cause: Cause }> {
    const release = await writer();
    const content = await contentOf(result);
    const cause = causeOf(result) ?? unfit(result, content, mode, found);
    if (cause === null) return { result, content, unjudged: null, found };
    if (mode === 'collector') return { result, content, unjudged: { ...cause, shown: 'failure' }, found };
    if (prefersMasked(mode) && hasTrainedTurn(content)) {
      return { result, content, unjudged: { ...cause, shown: 'masked' }, found };
    }
    release();
    return { cause };
  }

  /** `cause`: there is a result, and nobody here can read it. */
  async function resultOf(
    found: Found,
    mode: Mode,
    hold: Hold,
  ): Promise<{ result: Result } | { cause: Cause }> {
    const late = AbortSignal.timeout(Math.max(1, hold.until - Date.now()));
    try {
      const until = AbortSignal.any([hold.gone, late]);
      return { result: await results.wait(found.run.run_id, found.rolloutId, until) };
    } catch (error) {
      if (error instanceof SwefarmError && error.code === 'result_unreadable') {
        return { cause: { class: error.code, message: error.message } };
      }
      if (!late.aborted || hold.gone.aborted) throw error;
      await farm.cancel.cancelRollouts([found.rolloutId], 'deadline');
      throw unserved(
        { class: 'hold_expired', message: 'the call was held as long as its caller allows' },
        mode,
      );
    }
  }

  async function contentOf(result: Result): Promise<ArtifactContent | null> {
    if (result.artifact === null) return null;
    try {
      return await decodeArtifact(await farm.artifacts.get(result.artifact));
    } catch (error) {
      log.warn({ rollout_id: result.rollout_id, err: errorMessage(error) }, 'the artifact cannot be read');
      return null;
    }
  }

  /** Judged, but no sample that a trainer could take: with a policy there must be tokens of it. */
  function unfit(result: Result, content: ArtifactContent | null, mode: Mode, found: Found): Cause | null {
    if (!trains(mode) || found.run.policy === null || hasTrainedTurn(content)) return null;
    return {
      class: 'no_trained_turn',
      message: `judged after ${result.turns} turns, but none has token ids`,
    };
  }

  /** The versions of all policies that trainers speak of: a later step's identical row is another request. */
  async function policyVersions(): Promise<unknown> {
    return (await farm.policies.list()).map(({ name, version }) => [name, version]);
  }
}

const unserved = (cause: Cause, mode: Mode): Refusal =>
  new Refusal(503, cause.class, `${cause.class}: ${cause.message}; ${CONSEQUENCES[mode]}`);

const IN_ROW = { url: 'policy_base_url', model: 'policy_model_name' };

/** The connection is closed: there is nobody to answer. */
function leave(reply: FastifyReply): FastifyReply {
  return reply.hijack();
}

/** The id that a caller gave to its call, from a header or from the row; null: it gave none. */
function nameOf(request: FastifyRequest, row: GymRow): string | null {
  const header = request.headers['idempotency-key'];
  if (typeof header === 'string' && header !== '') {
    if (header.length <= 300) return `key ${header}`;
    throw new Refusal(400, 'bad_request', 'idempotency-key: expected at most 300 characters', {
      field: 'idempotency-key',
    });
  }
  return row._ng_rollout_id ? `id ${row._ng_rollout_id}` : null;
}

const fingerprint = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url');

/** Where the caller reached us, with its token as part of the host, which is all that Gym's clients can carry. */
function addressFor(request: FastifyRequest): { host: string; port: number } {
  const token = tokenOf(request);
  const credentials = token === null ? '' : `farm:${encodeURIComponent(token)}@`;
  const url = new URL(`http://${request.headers.host ?? request.hostname}`);
  return { host: `${credentials}${url.hostname}`, port: Number(url.port || 80) };
}

type Hold = {
  /** Aborted when the caller is gone, or the gateway goes. */
  gone: AbortSignal;
  /** Milliseconds since the epoch. */
  until: number;
  has(callId: string): Promise<void>;
  sleep(ms: number): Promise<void>;
  /** What is sent is no answer to the call. */
  lost(): void;
  done(): void;
};

/** Follows the connection: what closes unanswered becomes an orphan, what was answered is forgotten. */
function heldCall(
  reply: FastifyReply,
  desk: CallDesk,
  named: boolean,
  caller: Caller,
  stopping: AbortSignal,
): Hold {
  const closed = new AbortController();
  let callId: string | null = null;
  let lost = false;
  const onStop = (): void => closed.abort(new Error('the gateway stops'));
  const settle = async (): Promise<void> => {
    if (callId === null) return;
    if (reply.raw.writableFinished && !lost) await desk.answered(callId, named);
    else await desk.drop(callId);
  };
  const settleQuietly = (): void => {
    // With Redis away the call stays as it is; its gateway's death or the sweep decides later.
    settle().catch((error: unknown) => reply.log.debug({ err: errorMessage(error) }, 'call not settled'));
  };
  reply.raw.once('close', () => {
    closed.abort(new Error('the caller closed its connection'));
    settleQuietly();
  });
  stopping.addEventListener('abort', onStop, { once: true });
  if (stopping.aborted) onStop();
  return {
    gone: closed.signal,
    until: Date.now() + caller.maxHoldSeconds * 1000,
    async has(id) {
      callId = id;
      if (reply.raw.destroyed && !reply.raw.writableFinished) await settle();
    },
    sleep: async (ms) => await sleep(ms, undefined, { signal: closed.signal }),
    lost() {
      lost = true;
    },
    done: () => stopping.removeEventListener('abort', onStop),
  };
}
