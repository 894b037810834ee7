/** Gets one answer of the policy despite faults, weight updates and endpoints that fail during the answer. */
import { ContextOverflowError } from '@swefarm/policy';
import { type PolicyKey, RolloutFailure, UsageError } from '@swefarm/shared';
import type { ContextOverflow, PolicyReply } from '../agent.ts';
import { untilServing } from '../pause.ts';
import { PolicyFault } from './fault.ts';
import { redact, whyKeyWithheld, withoutUser } from './redact.ts';
import { askUntilAnswered } from './requests.ts';
import type { TurnContext, TurnRequest } from './turncontext.ts';

/** Requests one answer. Throws RolloutFailure `policy_*`, or the signal's reason when aborted. */
export async function requestTurn(
  context: TurnContext,
  request: TurnRequest,
): Promise<PolicyReply | ContextOverflow> {
  const { binding, time } = context;
  const { followed, endpoints, apiKey } = context.deps;
  await untilServing(followed.pause, request.signal);
  const clock = () => time.now() / 1000 - followed.pause.seconds();
  const started = clock();
  const seconds = () => clock() - started;
  const versions = context.versions.openTurn();
  let generated = (): number => 0;
  try {
    const client = await context.turnClient();
    generated = () => client.generatedTokens();
    const { reply, tokensBefore } = await askUntilAnswered(context, request, versions, client);
    endpoints.answered(binding.url);
    const { streamedTokens = 0, ...answer } = reply;
    const { generation_token_ids: ids, usage } = answer;
    context.addThroughput(ids?.length ?? usage?.completion_tokens ?? streamedTokens, seconds());
    const made = await versions.finish(binding.url, ids && ids.length - tokensBefore);
    return { ...answer, seconds: seconds(), endpoint: withoutUser(binding.url), ...made };
  } catch (error) {
    context.addThroughput(generated(), seconds());
    if (!(error instanceof ContextOverflowError)) throw toFailure(error, binding.url, apiKey);
    const message = redact(error.message, apiKey);
    return { context_overflow: true, of: error.of, message, seconds: seconds() };
  }
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
