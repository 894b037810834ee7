/** Probes one policy endpoint: its list of models, one completion, token ids and log-probabilities. */
import { AnswerError, APIError, createEndpointClient, type EndpointClient } from '@swefarm/policy';
import { errorMessage, type Finding, type PolicyKey, type Sampling } from '@swefarm/shared';
import { z } from 'zod';
import { fail, ok, warn } from './finding.ts';

const TIMEOUT_MS = 30_000;

const Completion = z.object({
  prompt_token_ids: z.array(z.number()).nullish(),
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({}),
        token_ids: z.array(z.number()).nullish(),
        logprobs: z.looseObject({ content: z.array(z.unknown()).nullish() }).nullish(),
      }),
    )
    .min(1),
});

export type ProbeOptions = {
  model: string | null;
  /** Sampling of the run; absent: the defaults of the server. */
  sampling?: Sampling;
  apiKey: PolicyKey | null;
  signal: AbortSignal;
};

/** Returns a finding for each check and never throws for faults of the endpoint. `url` is the base URL, as in `--policy-url`. */
export async function probePolicy(url: string, options: ProbeOptions): Promise<Finding[]> {
  const listed = await ask(url, options, (client, signal) => client.models(signal));
  if ('problem' in listed) return [fail('endpoint', listed.problem, listed.remedy)];
  const ids = listed.answer.map((model) => model.id);
  const found = [ok('endpoint', `answers, serves ${ids.slice(0, 5).join(', ') || 'no model'}`)];
  const model = options.model ?? ids[0];
  if (model === undefined) return found;
  if (!ids.includes(model))
    found.push(warn('model', `${model} is not in its list`, `use one of: ${ids.slice(0, 5).join(', ')}`));
  return [...found, ...(await completionFindings(url, model, options))];
}

/** Returns the first model that the endpoint lists; null if it lists none or does not answer. */
export async function firstModel(url: string, options: ProbeOptions): Promise<string | null> {
  const listed = await ask(url, options, (client, signal) => client.models(signal));
  return 'problem' in listed ? null : (listed.answer[0]?.id ?? null);
}

async function completionFindings(url: string, model: string, options: ProbeOptions): Promise<Finding[]> {
  const body = {
    model,
    messages: [{ role: 'user', content: 'Answer yes.' }],
    ...options.sampling,
    max_tokens: 4,
    logprobs: true,
    return_token_ids: true,
  };
  const started = Date.now();
  const reply = await askChat(url, options, body);
  if ('problem' in reply) return [fail('completion', reply.problem, reply.remedy)];
  const parsed = Completion.safeParse(reply.answer);
  if (!parsed.success) {
    return [fail('completion', 'the answer is no chat completion', 'check which server answers at this URL')];
  }
  const [choice] = parsed.data.choices;
  const message: Record<string, unknown> = choice?.message ?? {};
  const tokens = (choice?.token_ids ?? message.generation_token_ids) != null;
  const prompt = (parsed.data.prompt_token_ids ?? message.prompt_token_ids) != null;
  const logProbs = (choice?.logprobs?.content ?? message.generation_log_probs) != null;
  const offered = [...(tokens && prompt ? ['token ids'] : []), ...(logProbs ? ['log-probabilities'] : [])];
  return [
    ok('completion', `one of ${model} in ${Date.now() - started} ms`),
    offered.length === 2
      ? ok('tokens', `${offered.join(' and ')} are offered`)
      : warn(
          'tokens',
          `${offered.join('') || 'neither token ids nor log-probabilities'} offered`,
          'fine for evaluation; training with --require-tokens needs both (vLLM: return_token_ids, logprobs)',
        ),
  ];
}

/** Answer of an endpoint, or why there is none. `status`: HTTP status of a refusal; `slow`: timeout; `unreachable`: no connection. */
export type Asked<T> =
  | { answer: T }
  | { problem: string; remedy: string; status?: number; slow?: true; unreachable?: true };

export const askChat = (
  url: string,
  target: Pick<ProbeOptions, 'apiKey' | 'signal'>,
  body: object,
  timeoutMs?: number,
): Promise<Asked<unknown>> =>
  ask(
    url,
    target,
    async (client, signal): Promise<unknown> =>
      JSON.parse((await client.postWhole('chat', [JSON.stringify(body)], signal)).toString('utf8')),
    timeoutMs,
  );

/** Makes one request within `timeoutMs`. A failure becomes a problem with a remedy. */
export async function ask<T>(
  url: string,
  { apiKey, signal }: Pick<ProbeOptions, 'apiKey' | 'signal'>,
  request: (client: EndpointClient, signal: AbortSignal) => Promise<T>,
  timeoutMs = TIMEOUT_MS,
): Promise<Asked<T>> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    return { answer: await request(createEndpointClient(url, apiKey), limited) };
  } catch (error) {
    if (error instanceof APIError && error.status !== undefined)
      return {
        problem: `HTTP ${error.message.slice(0, 200)}`,
        remedy: remedyFor(error.status),
        status: error.status,
      };
    const remedy = 'is this the base URL of an OpenAI-compatible server (…/v1)?';
    if (error instanceof SyntaxError) return { problem: 'the answer is not JSON', remedy };
    if (error instanceof AnswerError) return { problem: error.message, remedy };
    const slow = error instanceof Error && error.name === 'TimeoutError';
    return slow
      ? {
          problem: `no answer within ${timeoutMs / 1000} s`,
          remedy: 'look at the load of the endpoint',
          slow: true,
        }
      : {
          problem: errorMessage(error),
          remedy: 'start the endpoint, or check host and port of the URL',
          unreachable: true,
        };
  }
}

function remedyFor(status: number): string {
  if (status >= 300 && status < 400) return 'it redirects: name the endpoint that it points to';
  if (status === 401 || status === 403) return 'pass --api-key-env VARIABLE with a valid key';
  if (status === 404) return 'check the model name and that the URL ends as the server wants (…/v1)';
  if (status === 429) return 'the endpoint is overloaded: wait or lower the concurrency';
  return status >= 500 ? "look at the endpoint's log" : 'check URL and model';
}
