/** Probes one policy endpoint by single requests: its list of models, a completion with token ids and log-probabilities, a picture. */
import {
  AnswerError,
  APIError,
  createEndpointClient,
  type EndpointClient,
  PICTURES_REMEDY,
  type Route,
  refusesPictures,
  wireMessage,
} from '@swefarm/policy';
import {
  errorMessage,
  type Finding,
  type Message,
  type PolicyConfig,
  type PolicyKey,
  type Sampling,
} from '@swefarm/shared';
import { z } from 'zod';
import { fail, ok, warn } from './finding.ts';

const TIMEOUT_MS = 30_000;
/** Timeout of the requests before a run is queued. */
const REACHABLE_TIMEOUT_MS = 10_000;

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
const TextCompletion = z.object({
  choices: z
    .array(
      z.looseObject({
        text: z.string(),
        token_ids: z.array(z.number()).nullish(),
        logprobs: z.looseObject({ token_logprobs: z.array(z.unknown()).nullish() }).nullish(),
      }),
    )
    .min(1),
});

export type ProbeOptions = {
  model: string | null;
  /** Sampling of the run; absent: the defaults of the server. */
  sampling?: Sampling;
  /** Token modes of the run, which select the routes to try; absent: chat. */
  modes?: Pick<PolicyConfig, 'token_mode' | 'tokenizer'>;
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
  const isTokenIn = options.modes?.token_mode === 'token-in';
  return [...found, ...(await (isTokenIn ? tokenInFindings : completionFindings)(url, model, options))];
}

/** Tries the routes of mode token-in, which needs only text completions. */
async function tokenInFindings(url: string, model: string, options: ProbeOptions): Promise<Finding[]> {
  const started = Date.now();
  const reply = await askOnce(url, options, { model, sampling: options.sampling, tokens: true });
  if ('problem' in reply) return [fail('completion', reply.problem, reply.remedy)];
  const parsed = TextCompletion.safeParse(reply.answer);
  if (!parsed.success)
    return [fail('completion', 'the answer is no text completion', 'check which server answers at this URL')];
  const [choice] = parsed.data.choices;
  const lacking = [
    ...(choice?.token_ids == null ? ['token ids (vLLM and SGLang: return_token_ids)'] : []),
    ...(choice?.logprobs?.token_logprobs == null ? ['log-probabilities'] : []),
  ];
  const found = [
    ok('completion', `one of ${model} in ${Date.now() - started} ms`),
    lacking.length === 0
      ? ok('tokens', 'token ids and log-probabilities are offered')
      : fail('tokens', `no ${lacking.join(' and no ')}`, 'token-in needs both: use another server or mode'),
  ];
  return options.modes?.tokenizer ? found : [...found, await tokenizeFinding(url, model, options)];
}

async function tokenizeFinding(url: string, model: string, options: ProbeOptions): Promise<Finding> {
  const reply = await askRoute(url, options, 'tokenize', { model, messages: QUESTIONS });
  if ('answer' in reply) return ok('tokenize', 'renders messages');
  return fail('tokenize', reply.problem, 'pass --tokenizer FOLDER, or an endpoint that serves /tokenize');
}

const QUESTIONS: Message[] = [{ role: 'user', content: 'Answer yes.' }];

/** Requests an answer of 4 tokens at the route of the token mode. `tokens`: asks for token ids and log-probabilities. */
function askOnce(
  url: string,
  target: Pick<ProbeOptions, 'apiKey' | 'signal' | 'modes'>,
  { model, sampling, tokens }: { model: string; sampling?: Sampling | undefined; tokens: boolean },
  timeoutMs?: number,
): Promise<Asked<unknown>> {
  const rest = { ...sampling, max_tokens: 4, ...(tokens ? { return_token_ids: true } : {}) };
  return target.modes?.token_mode === 'token-in'
    ? askRoute(
        url,
        target,
        'completions',
        { model, prompt: 'Answer yes.', ...rest, ...(tokens ? { logprobs: 0 } : {}) },
        timeoutMs,
      )
    : askRoute(
        url,
        target,
        'chat',
        { model, messages: QUESTIONS, ...rest, ...(tokens ? { logprobs: true } : {}) },
        timeoutMs,
      );
}

const BOTH =
  'fine for evaluation; training with --require-tokens needs both (vLLM: return_token_ids, logprobs)';

/** Returns the first model that the endpoint lists; null if it lists none or does not answer. */
export async function firstModel(url: string, options: ProbeOptions): Promise<string | null> {
  const listed = await ask(url, options, (client, signal) => client.models(signal));
  return 'problem' in listed ? null : (listed.answer[0]?.id ?? null);
}

async function completionFindings(url: string, model: string, options: ProbeOptions): Promise<Finding[]> {
  const started = Date.now();
  const reply = await askOnce(url, options, { model, sampling: options.sampling, tokens: true });
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
      : warn('tokens', `${offered.join('') || 'neither token ids nor log-probabilities'} offered`, BOTH),
  ];
}

/**
 * Tests within seconds, before a run is queued, whether an endpoint can serve the run. Reads the list of models. If the list lacks the
 * model, requests a short completion, because some servers omit models from the list. Returns `fail` if every rollout would fail in the
 * same way, and `warn` if the endpoint is overloaded or still starts. Never throws for faults of the endpoint.
 */
export async function probeReachable(
  url: string,
  { model, ...target }: Pick<ProbeOptions, 'apiKey' | 'signal' | 'modes'> & { model: string },
): Promise<Finding> {
  const listed = await ask(url, target, (client, limited) => client.models(limited), REACHABLE_TIMEOUT_MS);
  const ids = 'answer' in listed ? listed.answer.map(({ id }) => id) : [];
  if (ids.includes(model)) return ok('endpoint', `serves ${model}`);
  if ('problem' in listed && (listed.slow || listed.unreachable))
    return (listed.slow ? warn : fail)('endpoint', listed.problem, listed.remedy);
  const tried = await askOnce(url, target, { model, tokens: false }, REACHABLE_TIMEOUT_MS);
  if ('answer' in tried) return ok('endpoint', `answers as ${model}`);
  const { problem, remedy, status, slow } = tried;
  const passes = slow === true || status === 429 || (status !== undefined && status >= 500);
  if (passes) return warn('endpoint', problem, remedy);
  const known = ids.length > 0 ? `use one of: ${ids.slice(0, 5).join(', ')}` : remedy;
  return fail('endpoint', `model ${model}: ${problem}`, status === 401 || status === 403 ? remedy : known);
}

/** A white PNG of 64 x 64 pixels, because some models refuse smaller pictures. */
const SQUARE =
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoPo33UrYvQQckD4XAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAMpT0sIcNbcEAAAAAElFTkSuQmCC';

const QUESTION: Message = { role: 'user', content: 'Which colour is this? Answer with one word.' };
const WITH_PICTURE: Message = {
  ...QUESTION,
  pictures: [
    {
      address: 'probe',
      file: {
        media_type: 'image/png',
        sha256: '',
        bytes: Buffer.from(SQUARE, 'base64').length,
        data: SQUARE,
      },
    },
  ],
};

/**
 * Tests whether an endpoint accepts a picture. Returns `fail` if the answer refuses pictures, or if the endpoint answers only the request
 * without a picture; `warn` if both requests fail. Never throws for faults of the endpoint.
 */
export async function probePictures(
  url: string,
  model: string,
  options: Omit<ProbeOptions, 'model'>,
): Promise<Finding> {
  const post = (message: Message): Promise<Asked<unknown>> =>
    askRoute(url, options, 'chat', {
      ...{ model, messages: [wireMessage(message)] },
      ...{ ...options.sampling, max_tokens: 4 },
    });
  const asked = await post(WITH_PICTURE);
  if ('answer' in asked) return ok('pictures', `${model} takes them`);
  const refused = refusesPictures(asked.problem) || 'answer' in (await post(QUESTION));
  return refused
    ? fail('pictures', `${model} refuses a picture: ${asked.problem}`, PICTURES_REMEDY)
    : warn('pictures', `could not be tried: ${asked.problem}`, asked.remedy);
}

/** Answer of an endpoint, or why there is none. `status`: HTTP status of a refusal; `slow`: timeout; `unreachable`: other failure. */
type Asked<T> =
  | { answer: T }
  | { problem: string; remedy: string; status?: number; slow?: true; unreachable?: true };

const askRoute = (
  url: string,
  target: Pick<ProbeOptions, 'apiKey' | 'signal'>,
  route: Route,
  body: object,
  timeoutMs?: number,
): Promise<Asked<unknown>> =>
  ask(
    url,
    target,
    async (client, signal): Promise<unknown> =>
      JSON.parse((await client.postWhole(route, [JSON.stringify(body)], signal)).toString('utf8')),
    timeoutMs,
  );

/** Makes one request within `timeoutMs`. A failure becomes a problem with a remedy. */
async function ask<T>(
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
