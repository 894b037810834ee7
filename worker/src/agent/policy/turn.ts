/** One answer of the policy, through whatever befalls it: faults, weight updates, an endpoint that dies in the middle. */
import {
  AnswerError,
  ContextOverflowError,
  type Message,
  type PolicyConfig,
  type PolicyKey,
  type Post,
  RolloutFailure,
  type ToolDefinition,
  type TurnClient,
  type TurnReply,
  UsageError,
  wantsStream,
} from '@swefarm/shared';
import type { ContextOverflow, PolicyReply } from '../agent.ts';
import { untilServing } from '../pause.ts';
import type { Time } from '../time.ts';
import type { EndpointBinding } from './binding.ts';
import { redact, withheld, withoutUser } from './client.ts';
import { faultOfAnswer, PolicyFault } from './fault.ts';
import type { PolicyDeps } from './policy.ts';
import { retryFaults } from './retry.ts';
import type { Throughput } from './throughput.ts';
import { type Client, send } from './transport.ts';
import type { TurnVersions, Versions } from './versions.ts';

/** What the turns of one rollout share. */
export type TurnContext = {
  config: PolicyConfig;
  deps: PolicyDeps;
  place: EndpointBinding;
  versions: Versions;
  heard: Throughput;
  time: Time;
  clientAt(url: string): Client;
  speaker(): Promise<TurnClient>;
};

export type TurnRequest = {
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  signal: AbortSignal;
};

/** Throws RolloutFailure `policy_*`, or the signal's reason when aborted. */
export async function requestTurn(
  talk: TurnContext,
  asked: TurnRequest,
): Promise<PolicyReply | ContextOverflow> {
  const { deps, place, versions, heard, time } = talk;
  const { followed, endpoints, apiKey } = deps;
  await untilServing(followed.pause, asked.signal);
  const clock = () => time.now() / 1000 - followed.pause.seconds();
  const started = clock();
  const seconds = () => clock() - started;
  const turn = versions.openTurn();
  let generated = (): number => 0;
  try {
    const speaker = await talk.speaker();
    generated = speaker.generated;
    const { answer: spoken, keptBefore } = await askUntilAnswered(talk, asked, turn, speaker);
    endpoints.answered(place.url);
    const { came = 0, ...answer } = spoken;
    heard.whole(answer, seconds(), came);
    const { generation_token_ids: ids } = answer;
    const told = await turn.ended(place.url, ids && ids.length - keptBefore);
    return { ...answer, seconds: seconds(), endpoint: withoutUser(place.url), ...told };
  } catch (error) {
    heard.unfinished(generated(), seconds());
    if (!(error instanceof ContextOverflowError)) throw toFailure(error, place.url, apiKey);
    const message = redact(error.message, apiKey);
    return { context_overflow: true, of: error.of, message, seconds: seconds() };
  }
}

/** Faults of one endpoint in one turn after which another one is asked; of silence one is enough. */
const FAULTS_OF_ONE = 2;

/** What an endpoint is set aside for; anything else would be the same elsewhere. */
const ENDPOINT_FAULTS: ReadonlySet<string> = new Set([
  'policy_unreachable',
  'policy_server_error',
  'policy_silent',
]);

/** The answer, and how many of its tokens were there before the request that ended it. */
async function askUntilAnswered(
  talk: TurnContext,
  asked: TurnRequest,
  turn: TurnVersions,
  speaker: TurnClient,
) {
  const { config, deps, place, versions } = talk;
  const { followed, endpoints, apiKey, log } = deps;
  const { pause } = followed;
  let answered = false;
  const post = createPost(talk, asked, (head) => {
    answered = true;
    turn.heard(head);
  });
  let sent = versions.spoken();
  let keptBefore = 0;
  let progressed = false;
  let faults = 0;
  const left = new Set<string>();
  const request = async (): Promise<TurnReply> => {
    // With new weights a trainer may have named other endpoints.
    place.rebind();
    sent = versions.spoken();
    turn.sent(sent);
    answered = false;
    keptBefore = speaker.kept();
    try {
      return await askStreamedOrWhole(config, speaker, () => speaker.ask(asked.messages, asked.tools, post));
    } catch (error) {
      const kept = speaker.kept() - keptBefore;
      progressed = kept > 0;
      turn.broke(kept);
      throw error;
    }
  };
  const answer = await retryFaults(request, {
    patienceSeconds: config.patience,
    pause,
    signal: asked.signal,
    async excused() {
      await followed.refresh();
      return pause.paused || versions.spoken().changed !== sent.changed;
    },
    refresh: followed.refresh,
    progressed: () => progressed,
    answered: () => answered,
    onFault(fault) {
      if (!ENDPOINT_FAULTS.has(fault.failureClass) || fault.busy) return;
      faults++;
      endpoints.failed(place.url, redact(fault.message, apiKey));
    },
    elsewhere(fault) {
      if (faults < (fault.failureClass === 'policy_silent' ? 1 : FAULTS_OF_ONE)) return false;
      left.add(place.url);
      const from = withoutUser(place.url);
      if (!place.move(left)) return false;
      faults = 0;
      const to = withoutUser(place.url);
      log.warn({ from, to, class: fault.failureClass }, 'the endpoint fails: another one is asked');
      return true;
    },
    onRetry: (fault, waitSeconds, tries) =>
      log.warn(
        { endpoint: withoutUser(place.url), class: fault.failureClass, tries, wait_seconds: waitSeconds },
        `policy request failed, trying again: ${redact(fault.message, apiKey)}`,
      ),
  });
  return { answer, keptBefore };
}

/** Sends to wherever the rollout is bound at that moment. */
function createPost(
  { config, deps, place, time, clientAt }: TurnContext,
  asked: TurnRequest,
  onHead: TurnVersions['heard'],
): Post {
  return (route, body, sink) =>
    send(route, body, sink, {
      client: clientAt(place.url),
      url: place.url,
      silenceSeconds: config.request_timeout,
      pause: deps.followed.pause,
      time,
      signal: asked.signal,
      onHead,
    });
}

/** A server that refuses the very word is asked without a stream, from then on. */
async function askStreamedOrWhole(
  config: PolicyConfig,
  speaker: TurnClient,
  ask: () => Promise<TurnReply>,
): Promise<TurnReply> {
  const asked = (): Promise<TurnReply> =>
    ask().catch((error: unknown) => {
      throw error instanceof AnswerError ? faultOfAnswer(error) : error;
    });
  try {
    return await asked();
  } catch (error) {
    if (!(error instanceof PolicyFault) || config.stream !== 'auto' || !wantsStream(config)) throw error;
    if (error.failureClass !== 'policy_bad_request' || !/\bstream/i.test(error.message)) throw error;
    speaker.unstreamed();
    return await asked();
  }
}

/** What is thrown of an error, named by what is at fault. */
function toFailure(error: unknown, url: string, apiKey: PolicyKey | null): unknown {
  if (error instanceof UsageError)
    return new RolloutFailure('policy_bad_request', error.message, { cause: error });
  if (!(error instanceof PolicyFault)) return error;
  const kept = error.failureClass === 'policy_unauthorized' && withheld(apiKey, url);
  const why = `${error.message}${kept ? `; ${kept}` : ''}`;
  return new RolloutFailure(error.failureClass, `${withoutUser(url)}: ${redact(why, apiKey)}`, {
    cause: error.cause,
  });
}
