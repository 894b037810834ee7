/** Serves `POST /run`: reads the row, waits for the rollout and sends the answer. */
import { Readable } from 'node:stream';
import { createSemaphore, type EndpointProbe, type Instance, onAbort, UnusableError } from '@swefarm/shared';
import type { GymRow, GymRunRequest } from '@swefarm/trajectories';
import { answerPieces, episodeFailure, episodePieces } from '@swefarm/trajectories';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, findCaller } from '../access/callers.ts';
import { requireInstanceAllowed } from '../access/ceilings.ts';
import type { RouteDeps } from '../access/deps.ts';
import { fingerprint } from '../access/digest.ts';
import { settingsRefusal } from '../access/refusal.ts';
import { type AnswerDeps, awaitAnswer, type CallAnswer, NoVerdict } from './callanswer.ts';
import { CallConnection, Superseded } from './callconnection.ts';
import { readCallerRun, requestedInstance } from './callerrun.ts';
import { type CallIdentity, identifyCall, promptOf } from './callidentity.ts';
import { type CallRollout, CallTracker } from './calltracker.ts';
import { type FailureMode, failureMode, honoursMask, isTraining } from './failuremode.ts';
import { OpenProbes } from './openprobes.ts';
import { type CallerRun, OpenRuns } from './openruns.ts';
import { ResultReaders } from './resultreaders.ts';
import { Siblings } from './siblings.ts';

/** Maximum number of answers in memory; each answer takes some megabytes. */
const WRITERS = 16;
/** Time after which the gateway closes a connection whose client does not read the answer. */
const STALLED_MS = 120_000;

export type CallDeps = RouteDeps &
  AnswerDeps & {
    runs: OpenRuns;
    probes: OpenProbes;
    siblings: Siblings;
    /** Pairs of caller and mode that have been logged. */
    loggedModes: Set<string>;
  };

export function createCallDeps(app: FastifyInstance, deps: RouteDeps): CallDeps {
  const { farm, config, log, signal } = deps;
  const runs = new OpenRuns(farm, config, log, deps.prices);
  const probes = new OpenProbes(deps);
  return {
    ...deps,
    runs,
    calls: new CallTracker(app, deps, runs, probes),
    probes,
    results: new ResultReaders(farm, log, signal),
    siblings: new Siblings(config.gateway_grace_seconds * 1000),
    writers: createSemaphore(WRITERS),
    loggedModes: new Set(),
  };
}

type Call = GymRunRequest & {
  caller: Caller;
  mode: FailureMode;
  instance: Instance;
  callerRun: CallerRun;
  identity: CallIdentity;
  /** Hash of the stream in which the caller reads the answers of several calls; null: no stream. */
  stream: string | null;
};

type OpenCall = Call & { connection: CallConnection; reply: FastifyReply };

export async function serveCall(
  deps: CallDeps,
  request: FastifyRequest & { body: GymRunRequest },
  reply: FastifyReply,
): Promise<FastifyReply> {
  const read = readCall(deps, request);
  // Frees the body while the call waits.
  (request as { body: unknown }).body = undefined;
  const limits = {
    maxHoldSeconds: read.caller.max_hold_seconds,
    timeoutSeconds: read.row.rollout_timeout_s ?? null,
  };
  using connection = new CallConnection(reply, deps.calls, read.identity, limits, deps.signal);
  try {
    connection.closed.throwIfAborted();
    const call = { ...read, connection, reply };
    const rollout = await findRollout(deps, call);
    await connection.assign(rollout);
    const { rolloutId, attached } = rollout;
    deps.log.debug({ rollout_id: rolloutId, caller: read.caller.name, attached }, 'call waits');
    return await answerCall(deps, call, rollout);
  } catch (error) {
    if (connection.closed.reason instanceof Superseded) throw connection.closed.reason;
    if (connection.closed.aborted) return reply.hijack();
    // The rollout continues: if the caller repeats the request, the new request takes over the rollout.
    if (error instanceof UnusableError) connection.isUnanswered = true;
    // A refusal ends the stream of the siblings. For NoVerdict, `answerCall` has already ended the stream.
    const isRefused = !(error instanceof NoVerdict) && !(error instanceof Superseded);
    if (isRefused && read.stream !== null) deps.siblings.endStreams(read.stream, read.identity.fingerprint);
    throw error;
  }
}

function readCall(deps: CallDeps, request: FastifyRequest & { body: GymRunRequest }): Call {
  const { runs, config } = deps;
  const { body } = request;
  const { row } = body;
  const caller = findCaller(request, row.agent_ref?.name);
  const mode = failureMode(caller, body);
  logMode(deps, caller, mode);
  const instance = requestedInstance(row, deps);
  requireInstanceAllowed(instance, config, '');
  const callerRun = readCallerRun(caller, mode, row, deps);
  const runName = runs.nameOf(callerRun);
  const identity = identifyCall(request, body, caller, mode, runName, config);
  const parts = streamOf(mode, row);
  const stream = parts && fingerprint([caller.name, runName, ...parts]);
  return { ...body, caller, mode, instance, callerRun, identity, stream };
}

/** Returns the key of a call's stream: the prompt for SingleController; one key for all calls of the asynchronous collector. */
function streamOf(mode: FailureMode, row: GymRow): string[] | null {
  if (mode === 'nemo-rl') return [promptOf(row)];
  return mode === 'nemo-rl-sync' ? [] : null;
}

/** Logs the mode that `auto` chose for a caller, unless this mode has been logged for the caller. */
function logMode({ log, loggedModes }: CallDeps, caller: Caller, mode: FailureMode): void {
  const name = `${caller.name} ${mode}`;
  if (caller.failures !== 'auto' || loggedModes.has(name)) return;
  loggedModes.add(name);
  log.info({ caller: caller.name, mode }, 'mode of failures chosen for this caller (auto)');
}

const IN_ROW = { url: 'policy_base_url', model: 'policy_model_name' };

async function findRollout(deps: CallDeps, call: OpenCall): Promise<CallRollout> {
  const { identity, callerRun, instance, connection } = call;
  const taken = identity.named ? null : deps.siblings.takeUp(identity.fingerprint);
  if (taken) return taken;
  try {
    return await deps.calls.find(identity, callerRun, instance, connection.closed);
  } catch (error) {
    throw settingsRefusal(error, '', IN_ROW);
  }
}

/** Waits for the rollout and sends the answer. A temporary failure is answered after the siblings of the call. */
async function answerCall(deps: CallDeps, call: OpenCall, rollout: CallRollout): Promise<FastifyReply> {
  const { caller, mode, stream, identity, reply, connection } = call;
  const sibling = { rollout, fingerprint: identity.fingerprint, connection };
  const membership = stream === null ? null : deps.siblings.join(stream, sibling);
  if (membership) onAbort(connection.closed, membership.leave);
  try {
    const masks = honoursMask(caller, mode);
    const answer = await awaitAnswer(deps, rollout, { mode, masks, connection, membership });
    if (membership && !membership.decide()) throw new Superseded();
    return sendAnswer(call, answer, await deps.probes.find(answer.rollout.run));
  } catch (error) {
    if (!(error instanceof NoVerdict)) throw error;
    const { reason } = error;
    if (reason.kind === 'passing') {
      connection.forgetsName = true;
      const latest = Date.now() + deps.config.gateway_group_hold_seconds * 1000;
      await membership?.waitForSiblings(Math.min(connection.deadline, latest), connection.closed);
    }
    membership?.endStreams();
    if (call.episode) return reply.send(episodeFailure(call.episode, reason, isTraining(mode)));
    throw error;
  }
}

function sendAnswer(call: OpenCall, answer: CallAnswer, probe: EndpointProbe | null): FastifyReply {
  const { row, episode, caller, mode, instance, reply, connection } = call;
  const { cause, unjudged, rollout } = answer;
  const isFailure = unjudged?.shown === 'failure';
  if (isFailure && !unjudged.terminal) connection.forgetsName = true;
  if (episode && cause && isFailure) return reply.send(episodeFailure(episode, cause, isTraining(mode)));
  const pieces = answerPieces({
    ...answer,
    row,
    probe,
    repo: instance.repo,
    evaluationTimeout: rollout.run.evaluation.timeout,
    lines: row.trajectory_lines ?? 'main',
    maskOverlong: row.mask_overlong ?? caller.mask_overlong,
    experts: row.routed_experts ?? rollout.run.policy?.routed_experts === 'require',
    trajectory: caller.ng_trajectory && !isTraining(mode) && episode === null,
  });
  const text = episode ? episodePieces(episode, pieces) : pieces;
  reply.raw.setTimeout(STALLED_MS, () => reply.raw.destroy());
  reply.raw.once('finish', () => reply.raw.setTimeout(0));
  return reply.type('application/json').send(Readable.from(text, { highWaterMark: 4 }));
}
