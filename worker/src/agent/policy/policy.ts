/** The policy client of a rollout: it returns one answer per call and classifies every fault. */
import { ContextOverflowError, type EndpointClient, type Post } from '@swefarm/policy';
import { type PolicyConfig, type PolicyKey, RolloutFailure, UsageError } from '@swefarm/shared';
import { z } from 'zod';
import type { ContextOverflow, LineReply, PolicyOfLines } from '../agent.ts';
import { untilServing } from '../deadline.ts';
import { PolicyFault } from './fault.ts';
import { redact, whyKeyWithheld, withoutUser } from './redact.ts';
import { askUntilAnswered } from './requests.ts';
import { resumptionOf } from './resumption.ts';
import {
  type LazyTurnClient,
  openTurnContext,
  type PolicyDeps,
  type TurnContext,
  type TurnRequest,
} from './turncontext.ts';

/**
 * Opens the policy for one attempt, bound to the least loaded endpoint; dispose it to release the binding. `complete` throws RolloutFailure
 * `policy_*`, or the signal's reason when aborted. After a fault it may continue at another endpoint, without sampling received tokens
 * again in mode token-in. While the trainer pauses the policy, `complete` sends nothing and no clock runs.
 */
export function openPolicy(config: PolicyConfig, deps: PolicyDeps): PolicyOfLines & Disposable {
  const context = openTurnContext(config, deps);
  const { binding, received } = context;
  const openLine: PolicyOfLines['openLine'] = (after) => {
    const client = context.openLine(after);
    return async (request) => {
      using _awaiting = deps.awaiting?.();
      return await requestTurn(context, request, client);
    };
  };
  const only = openLine();
  return {
    get endpoint() {
      return withoutUser(binding.url);
    },
    config,
    pause: context.pause,
    throughput: () => ({ ...received }),
    complete: (messages, tools, signal) => only({ messages, tools, signal }),
    openLine,
    modelLength: context.modelLength,
    countTokens: (messages, tools, signal) => countTokens(context, { messages, tools, signal }),
    detokenize: (ids, signal) => detokenize(context.clientAt(binding.url), context.model(), ids, signal),
    [Symbol.dispose]() {
      binding[Symbol.dispose]();
      context.pause[Symbol.dispose]();
    },
  };
}

async function requestTurn(
  context: TurnContext,
  request: TurnRequest,
  openClient: LazyTurnClient,
): Promise<LineReply | ContextOverflow> {
  const { binding, time } = context;
  const { followed, endpoints, apiKey } = context.deps;
  await untilServing(followed.stopped, request.signal);
  const clock = () => time.now() / 1000 - context.pause.seconds();
  const started = clock();
  const seconds = () => clock() - started;
  const versions = context.openVersions();
  let generated = (): number => 0;
  try {
    const client = await openClient();
    const resumption = resumptionOf(request, versions, client);
    // An earlier attempt received the tokens of the resumed part. The seconds measured here do not include them.
    generated = () => client.generatedTokens() - resumption.tokens;
    const whole = () => seconds() + resumption.seconds;
    request.onBegin?.(() => {
      const begun = client.begun?.();
      if (!begun) return null;
      const { logProbs: log_probs, ...part } = begun;
      return { ...part, log_probs, versions: versions.partsOf(part.ids.length), seconds: whole() };
    });
    const { reply, url, tokensBefore } = await askUntilAnswered(
      context,
      request,
      versions,
      client,
      resumption,
    );
    endpoints.answered(url);
    const { streamedTokens = 0, ...answer } = reply;
    const { generation_token_ids: ids, usage } = answer;
    const tokens = ids?.length ?? usage?.completion_tokens ?? streamedTokens;
    context.addThroughput(tokens - resumption.tokens, seconds());
    const made = await versions.finish(url, ids && ids.length - tokensBefore);
    return { ...answer, ...made, seconds: whole(), endpoint: withoutUser(url) };
  } catch (error) {
    context.addThroughput(generated(), seconds());
    if (!(error instanceof ContextOverflowError)) throw toFailure(error, binding.url, apiKey);
    const message = redact(error.message, apiKey);
    return { context_overflow: true, of: error.of, message, seconds: seconds() };
  }
}

const COUNT_MS = 30_000;

/** Returns the number of tokens of a prompt; null if only the server knows it, or if no answer comes within {@link COUNT_MS}. */
async function countTokens(
  context: TurnContext,
  { messages, tools, signal }: TurnRequest,
): Promise<number | null> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(COUNT_MS)]);
  const client = context.clientAt(context.binding.url);
  const { countTokens: count } = await context.turnClients();
  const post: Post = (route, body) => client.postWhole(route, body, limited);
  return (await count?.(messages, tools, post).catch(() => null)) ?? null;
}

function toFailure(error: unknown, url: string, apiKey: PolicyKey | null): unknown {
  if (error instanceof UsageError)
    return new RolloutFailure('policy_bad_request', error.message, { cause: error });
  if (!(error instanceof PolicyFault)) return error;
  const withheld = error.failureClass === 'policy_unauthorized' && whyKeyWithheld(apiKey, url);
  const why = `${error.message}${withheld ? `; ${withheld}` : ''}`;
  return new RolloutFailure(error.failureClass, `${withoutUser(url)}: ${redact(why, apiKey)}`, {
    cause: error.cause,
  });
}

const DETOKENIZE_MS = 3_000;
const Detokenized = z.object({ prompt: z.string() });

/** Returns null when a request fails or takes longer than {@link DETOKENIZE_MS}. */
async function detokenize(
  client: EndpointClient,
  model: string,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<string[] | null> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(DETOKENIZE_MS)]);
  const textOf = async (id: number): Promise<string> => {
    const answer = await client.postWhole('detokenize', [JSON.stringify({ model, tokens: [id] })], limited);
    return Detokenized.parse(JSON.parse(answer.toString('utf8'))).prompt;
  };
  return await Promise.all(ids.map(textOf)).catch(() => null);
}
