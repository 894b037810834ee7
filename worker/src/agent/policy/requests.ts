/** Sends the requests of one turn, after faults also to other endpoints, until one answer is complete. */
import { AnswerError, type Post, type TurnClient, type TurnReply, wantsStream } from '@swefarm/policy';
import { sleep } from '@swefarm/shared';
import { untilServing } from '../pause.ts';
import { faultOfAnswer, PolicyFault, type RetryRule } from './fault.ts';
import { redact, withoutUser } from './redact.ts';
import { openPatience, waitBefore } from './retry.ts';
import { send } from './transport.ts';
import type { TurnContext, TurnRequest } from './turncontext.ts';
import type { AnnouncedVersion, TurnVersions } from './versions.ts';

/** Number of faults in one turn after which the client leaves an endpoint; it leaves a silent endpoint after one. */
const FAULTS_OF_ONE = 2;

/** Faults for which an endpoint is set aside; the other faults would occur at every endpoint. */
const ENDPOINT_FAULTS: ReadonlySet<string> = new Set([
  'policy_unreachable',
  'policy_server_error',
  'policy_silent',
]);

type RequestState = {
  readonly context: TurnContext;
  readonly request: TurnRequest;
  readonly versions: TurnVersions;
  readonly client: TurnClient;
  /** The last announcement of the trainer when the last request was sent. */
  announced: AnnouncedVersion;
  /** Number of tokens of the answer that existed before the last request. */
  tokensBefore: number;
  answering: boolean;
  progressed: boolean;
  /** Number of faults of the bound endpoint in this turn. */
  faults: number;
  /** Endpoints that the client left in this turn, each with the retry rule of the fault that caused it. */
  readonly left: Map<string, RetryRule>;
};

/**
 * Returns the answer, and how many of its tokens existed before the last request. Throws the last PolicyFault when no retry is allowed, any
 * other error at once, and the signal's reason when aborted.
 */
export async function askUntilAnswered(
  context: TurnContext,
  request: TurnRequest,
  versions: TurnVersions,
  client: TurnClient,
): Promise<{ reply: TurnReply; tokensBefore: number }> {
  const { config, deps, binding } = context;
  const { followed, apiKey, log } = deps;
  const state: RequestState = {
    context,
    request,
    versions,
    client,
    announced: context.versions.announced(),
    tokensBefore: 0,
    answering: false,
    progressed: false,
    faults: 0,
    left: new Map(),
  };
  using patience = openPatience(config.patience, followed.pause);
  for (let tries = 1; ; ) {
    await untilServing(followed.pause, request.signal);
    try {
      return { reply: await askOnce(state), tokensBefore: state.tokensBefore };
    } catch (error) {
      if (!(error instanceof PolicyFault)) throw error;
      if (await isByUpdate(state)) continue;
      countFault(state, error);
      if (state.progressed) tries = 1;
      const left = patience.leftSeconds(state.progressed || state.answering);
      if (left > 0 && moveElsewhere(state, error)) {
        tries = 1;
        continue;
      }
      const wait_seconds = waitBefore(error, tries, left);
      if (wait_seconds === null) throw error;
      log.warn(
        { endpoint: withoutUser(binding.url), class: error.failureClass, tries, wait_seconds },
        `policy request failed, retrying: ${redact(error.message, apiKey)}`,
      );
      tries++;
      await sleep(wait_seconds * 1000, request.signal);
      // A weight update may have begun during the wait.
      await followed.refresh();
    }
  }
}

/** Returns whether a weight update interrupted the last request. The retry then does not count. */
async function isByUpdate({ context, announced }: RequestState): Promise<boolean> {
  const { followed } = context.deps;
  await followed.refresh();
  return followed.pause.paused || context.versions.announced().changed !== announced.changed;
}

function countFault(state: RequestState, fault: PolicyFault): void {
  if (!ENDPOINT_FAULTS.has(fault.failureClass) || fault.busy) return;
  const { binding, deps } = state.context;
  state.faults++;
  deps.endpoints.failed(binding.url, redact(fault.message, deps.apiKey));
}

async function askOnce(state: RequestState): Promise<TurnReply> {
  const { context, request, versions, client } = state;
  // A trainer may serve new weights at other endpoints.
  context.binding.rebind();
  state.announced = context.versions.announced();
  versions.onRequest(state.announced);
  state.answering = false;
  state.tokensBefore = client.storedTokens();
  const post = createPost(state);
  try {
    return await askStreamedOrWhole(context, client, () => client.ask(request.messages, request.tools, post));
  } catch (error) {
    const received = client.storedTokens() - state.tokensBefore;
    state.progressed = received > 0;
    // This worker reads the policy's record once a second, so an update may be more recent than the record.
    if (received > 0) await context.deps.followed.refresh();
    versions.onBroken(received);
    throw error;
  }
}

function createPost(state: RequestState): Post {
  const { config, deps, binding, time, clientAt } = state.context;
  return (route, body, sink) =>
    send(route, body, sink, {
      client: clientAt(binding.url),
      silenceSeconds: config.request_timeout,
      pause: deps.followed.pause,
      time,
      signal: state.request.signal,
      onHead(head) {
        state.answering = true;
        state.versions.onHead(head);
      },
    });
}

/** After an endpoint refuses to stream, all further requests of the client ask for whole answers. */
async function askStreamedOrWhole(
  { config }: TurnContext,
  client: TurnClient,
  ask: () => Promise<TurnReply>,
): Promise<TurnReply> {
  const classified = (): Promise<TurnReply> =>
    ask().catch((error: unknown) => {
      throw error instanceof AnswerError ? faultOfAnswer(error) : error;
    });
  try {
    return await classified();
  } catch (error) {
    if (!(error instanceof PolicyFault) || config.stream !== 'auto' || !wantsStream(config)) throw error;
    if (error.failureClass !== 'policy_bad_request' || !/\bstream/i.test(error.message)) throw error;
    client.stopStreaming();
    return await classified();
  }
}

/**
 * Binds to another endpoint when the bound one failed often enough in this turn; returns false if it did not, or if there is no other. When
 * all others failed too, tries one again that was unreachable or overloaded, because it may have recovered.
 */
function moveElsewhere(state: RequestState, fault: PolicyFault): boolean {
  const { binding, deps } = state.context;
  if (state.faults < (fault.failureClass === 'policy_silent' ? 1 : FAULTS_OF_ONE)) return false;
  const from = binding.url;
  state.left.set(from, fault.retry);
  const passing = fault.retry === 'patience';
  const lost = [...state.left].flatMap(([url, rule]) => (rule === 'patience' ? [] : [url]));
  if (!binding.move(new Set(state.left.keys())) && !(passing && binding.move(new Set(lost)))) return false;
  state.faults = 0;
  deps.log.warn(
    { from: withoutUser(from), to: withoutUser(binding.url), class: fault.failureClass },
    'endpoint failed: moved to another one',
  );
  return true;
}
