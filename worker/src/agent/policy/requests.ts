/** Sends the requests of one turn, after faults also to other endpoints, until one answer is complete. */
import { AnswerError, type TurnClient, type TurnReply, wantsStream } from '@swefarm/policy';
import { exponentialBackoff, sleep } from '@swefarm/shared';
import { type Deadline, type Pause, startDeadline, untilServing } from '../deadline.ts';
import { FEW, faultOfAnswer, PolicyFault, type RetryRule } from './fault.ts';
import { redact, withoutUser } from './redact.ts';
import type { Resumption } from './resumption.ts';
import { createPost } from './transport.ts';
import type { TurnContext, TurnRequest } from './turncontext.ts';
import type { TurnVersions } from './versions.ts';

/** Number of faults in one turn after which the client leaves an endpoint; it leaves a silent endpoint after one. */
const FAULTS_OF_ONE = 2;

/** Faults for which an endpoint is set aside; the other faults would occur at every endpoint. */
const ENDPOINT_FAULTS: ReadonlySet<string> = new Set([
  'policy_unreachable',
  'policy_server_error',
  'policy_silent',
]);

/** Delay before a failed request is retried while servers are `pausing`. */
const PAUSING_MS = 1_000;

const backoffMs = exponentialBackoff(250, 8_000);

type RequestState = {
  readonly context: TurnContext;
  /** Endpoint of the last request: another line of requests may move the binding meanwhile. */
  url: string;
  readonly request: TurnRequest;
  readonly versions: TurnVersions;
  readonly client: TurnClient;
  readonly resumption: Resumption;
  /** Number of tokens of the answer that existed before the last request. */
  tokensBefore: number;
  answering: boolean;
  progressed: boolean;
  /** Number of faults of the bound endpoint in this turn. */
  faults: number;
  /** Endpoints that the client left in this turn, each with the retry rule of its last fault. */
  readonly left: Map<string, RetryRule>;
};

/**
 * Returns the answer, the endpoint that sent it, and how many of its tokens existed before the last request. Throws the last PolicyFault when no retry is allowed, any
 * other error at once, and the signal's reason when aborted.
 */
export async function askUntilAnswered(
  context: TurnContext,
  request: TurnRequest,
  versions: TurnVersions,
  client: TurnClient,
  resumption: Resumption,
): Promise<{ reply: TurnReply; url: string; tokensBefore: number }> {
  const { followed, apiKey, log } = context.deps;
  const { url } = context.binding;
  const counts = { tokensBefore: 0, answering: false, progressed: false, faults: 0 };
  const state: RequestState = {
    context,
    url,
    request,
    versions,
    client,
    resumption,
    ...counts,
    left: new Map(),
  };
  using patience = openPatience(context);
  for (let tries = 1; ; ) {
    await untilServing(followed.stopped, request.signal);
    try {
      const reply = await askOnce(state);
      return { reply, url: state.url, tokensBefore: state.tokensBefore };
    } catch (error) {
      if (!(error instanceof PolicyFault)) throw error;
      if (error.refused) context.deps.onRefused?.();
      await followed.refresh();
      // If a weight update interrupted the request, the retry does not count.
      if (followed.pause.paused || versions.isOutdated()) {
        if (followed.pause.paused && !followed.stopped.paused) await sleep(PAUSING_MS, request.signal);
        continue;
      }
      countFault(state, error);
      if (state.progressed) tries = 1;
      const left = patience.leftSeconds(error, state.progressed || state.answering);
      if (left > 0 && moveElsewhere(state, error)) {
        tries = 1;
        continue;
      }
      const wait_seconds = waitBefore(error, tries, left);
      if (wait_seconds === null) throw error;
      // An outage may last an hour, for hundreds of rollouts.
      if (Number.isInteger(Math.log2(tries)))
        log.warn(
          { endpoint: withoutUser(state.url), class: error.failureClass, tries, wait_seconds },
          `policy request failed, retrying: ${redact(error.message, apiKey)}`,
        );
      tries++;
      context.setRefusing(state, error.refused);
      await sleep(wait_seconds * 1000, request.signal).finally(() => context.setRefusing(state, false));
      // A weight update may have begun during the wait.
      await followed.refresh();
    }
  }
}

/** Determines how long a turn is tried. A rollout that has answers waits longer for an endpoint that refuses by 429 or 503, if it retries at all. */
function openPatience({ config, deps, received }: TurnContext) {
  const { refusalPatience = 0, followed } = deps;
  const usual = countSeconds(config.patience, followed.pause);
  const refusals = countSeconds(refusalPatience, followed.pause);
  return {
    leftSeconds(fault: PolicyFault, anew: boolean): number {
      const isSpared = fault.refused && received.tokens > 0 && config.patience > 0;
      if (!isSpared || refusalPatience <= config.patience) return usual.leftSeconds(anew);
      // The endpoint answers, so its earlier faults are over.
      usual.leftSeconds(true);
      return refusals.leftSeconds(anew);
    },
    [Symbol.dispose]() {
      usual[Symbol.dispose]();
      refusals[Symbol.dispose]();
    },
  };
}

/**
 * Counts seconds since the first fault after the last progress, without the pauses of the policy. An expired deadline cannot be
 * restarted, so each series of faults has a new one.
 */
function countSeconds(seconds: number, pause: Pause) {
  let deadline: Deadline | null = null;
  return {
    leftSeconds(anew: boolean): number {
      if (anew) deadline?.[Symbol.dispose]();
      if (anew || deadline === null) deadline = startDeadline(seconds, pause, () => undefined);
      return deadline.remainingSeconds();
    },
    [Symbol.dispose]: () => deadline?.[Symbol.dispose](),
  };
}

/** Returns the seconds to wait before the next request; null: send no further request. */
function waitBefore(fault: PolicyFault, tries: number, leftSeconds: number): number | null {
  if (fault.retry === 'never' || leftSeconds <= 0) return null;
  if (fault.retry === 'few' && tries >= FEW) return null;
  if (fault.retryAfterSeconds !== null && fault.retryAfterSeconds > leftSeconds) return null;
  // The random factor spreads the requests of the node's rollouts to a restarted endpoint.
  const backoff = (backoffMs(tries) / 1000) * (0.5 + Math.random());
  const wait = Math.max(fault.retryAfterSeconds ?? 0, backoff);
  return Math.min(wait, leftSeconds);
}

function countFault(state: RequestState, fault: PolicyFault): void {
  if (!ENDPOINT_FAULTS.has(fault.failureClass) || fault.busy) return;
  const { deps } = state.context;
  state.faults++;
  deps.endpoints.failed(state.url, redact(fault.message, deps.apiKey));
}

async function askOnce(state: RequestState): Promise<TurnReply> {
  const { context, request, versions, client } = state;
  const { config, binding, deps, time } = context;
  const { messages, tools, signal } = request;
  // A trainer may serve new weights at other endpoints.
  binding.rebind();
  state.url = binding.url;
  state.answering = false;
  state.tokensBefore = client.storedTokens();
  versions.onRequest(() => client.generatedTokens() - state.tokensBefore);
  const post = createPost({
    client: context.clientAt(state.url),
    silenceSeconds: config.request_timeout,
    pause: deps.followed.pause,
    time,
    signal,
    onHead(head) {
      state.answering = true;
      versions.onHead(head);
    },
  });
  try {
    return await askStreamedOrWhole(context, client, async () => {
      await state.resumption.decide(post);
      state.tokensBefore = client.storedTokens();
      return await client.ask(messages, tools, post, request);
    });
  } catch (error) {
    const received = client.storedTokens() - state.tokensBefore;
    state.progressed = received > 0;
    // This worker reads the policy's record once a second, so an update may be more recent than the record.
    if (received > 0) await deps.followed.refresh();
    versions.onBroken(received);
    throw error;
  }
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
 * Binds to another endpoint when the bound one failed often enough in this turn; returns false if it did not, or if no other is available.
 * When all others failed too, and this fault has the rule `patience`, an earlier endpoint with that rule is tried again.
 */
function moveElsewhere(state: RequestState, fault: PolicyFault): boolean {
  const { binding, deps } = state.context;
  if (state.faults < (fault.failureClass === 'policy_silent' ? 1 : FAULTS_OF_ONE)) return false;
  const from = state.url;
  state.left.set(from, fault.retry);
  // Another line of requests of this rollout has moved the binding meanwhile.
  const isMoved = binding.url !== from && !state.left.has(binding.url);
  const passing = fault.retry === 'patience';
  const lost = [...state.left].flatMap(([url, rule]) => (rule === 'patience' ? [] : [url]));
  const move = () => binding.move(new Set(state.left.keys())) || (passing && binding.move(new Set(lost)));
  if (!isMoved && !move()) return false;
  state.faults = 0;
  deps.log.warn(
    { from: withoutUser(from), to: withoutUser(binding.url), class: fault.failureClass },
    'endpoint failed: moved to another one',
  );
  return true;
}
