/**
 * Tests whether an endpoint returns log-probabilities of the distribution that it samples from (`processed`), or of the model before
 * temperature, top_p, top_k and min_p (`raw`, the default of vLLM). Training with raw log-probabilities is off-policy.
 * The probe compares a plain answer with a second answer, which is sampled at a low temperature or with `top_k` 1. Up to the first
 * different token, the plain answer predicts the raw and the processed log-probability of each token of the second answer.
 */
import { chatBody, completionBody, openRenderer, type Post } from '@swefarm/policy';
import {
  effectiveSampling,
  errorMessage,
  NEUTRAL,
  otherFields,
  reshapingKeys,
  type Sampling,
} from '@swefarm/shared';
import { z } from 'zod';
import { type ProbeTarget, postTo } from './probewire.ts';

/** One sampled token and the likeliest tokens at its position, with their log-probabilities. */
type TokenPosition = { token: string; logProb: number; top: ReadonlyMap<string, number> };
export type LogProbKind = 'raw' | 'processed' | 'unknown';
/** Setting that shapes the second answer: a low temperature, or only the likeliest token (`top_k` 1). */
type Knob = 'temperature' | 'top_k';

const LOW_TEMPERATURE = 0.05;
const TOP = 5;
const POSITIONS = 32;
/** Maximum difference of log-probabilities that count as equal, in nats: rounding depends on the batch size. */
const SAME = 0.2;
const APART = 0.5;

/** Compares two answers to the same prompt; the second one was sampled with `knob`. */
export function compare(
  plain: readonly TokenPosition[],
  other: readonly TokenPosition[],
  knob: Knob,
): LogProbKind {
  const votes = new Set<LogProbKind>();
  for (const [at, position] of other.entries()) {
    const expected = plain[at];
    if (!expected) break;
    votes.add(classify(expected.top, position, knob));
    if (expected.token !== position.token) break;
  }
  votes.delete('unknown');
  const [only] = votes;
  return votes.size === 1 && only ? only : 'unknown';
}

function classify(
  top: ReadonlyMap<string, number>,
  { token, logProb }: TokenPosition,
  knob: Knob,
): LogProbKind {
  const raw = top.get(token);
  const known = [...top.values()].filter(Number.isFinite).sort((a, b) => b - a);
  const [best] = known;
  if (raw === undefined || best === undefined || !Number.isFinite(logProb)) return 'unknown';
  const [least, most] = knob === 'temperature' ? sharpened(raw, best, known) : [0, 0];
  if (knob === 'top_k' && raw !== best) return 'unknown';
  if (raw > least - APART && raw < most + APART) return 'unknown';
  if (Math.abs(logProb - raw) <= SAME) return 'raw';
  return logProb >= least - SAME && logProb <= most + SAME ? 'processed' : 'unknown';
}

/** Returns bounds of a token's log-probability at the low temperature. Unlisted tokens are at most as likely as the last listed token. */
function sharpened(raw: number, best: number, known: readonly number[]): [least: number, most: number] {
  const sum = (power: number) => known.reduce((total, one) => total + Math.exp((one - best) * power), 0);
  const rest = Math.max(0, Math.exp(-best) - sum(1));
  const tail = rest * Math.exp(((known.at(-1) ?? best) - best) * (1 / LOW_TEMPERATURE - 1));
  const scaled = (raw - best) / LOW_TEMPERATURE;
  const listed = sum(1 / LOW_TEMPERATURE);
  return [scaled - Math.log(listed + tail), scaled - Math.log(listed)];
}

const PROMPTS = [
  'Name one thing that one finds in a kitchen.',
  'Write the first sentence of a story.',
  'Answer with any number.',
];

export type LogProbs = { verdict: LogProbKind; detail: string };

/** Requests two answers to a prompt, and tries the next prompt while the answers do not decide. Never throws for faults of the endpoint. */
export async function probeLogProbs(url: string, target: ProbeTarget): Promise<LogProbs> {
  const post = postTo(url, target);
  const truncates = reshapingKeys(effectiveSampling(target.config)).some((key) => TRUNCATING.has(key));
  const knobs: Knob[] = truncates ? ['temperature', 'top_k'] : ['temperature'];
  const verdicts = new Map<Knob, LogProbKind>();
  let why = 'the model is too certain, or too uncertain, of its tokens';
  for (const knob of knobs) {
    const sampling = {
      ...NEUTRAL,
      ...(knob === 'temperature' ? { temperature: LOW_TEMPERATURE } : { top_k: 1 }),
    };
    for (const prompt of PROMPTS) {
      try {
        const plain = await sampled(target, post, prompt, NEUTRAL);
        const verdict = compare(plain, await sampled(target, post, prompt, sampling), knob);
        verdicts.set(knob, verdict);
        if (verdict !== 'unknown') break;
      } catch (error) {
        target.signal.throwIfAborted();
        why = `with other sampling it answers: ${errorMessage(error)}`.slice(0, 200);
        break;
      }
    }
  }
  return summary([...knobs.map((knob) => verdicts.get(knob) ?? 'unknown')], why);
}

const TRUNCATING: ReadonlySet<string> = new Set(['top_p', 'top_k', 'min_p']);

function summary([temperature = 'unknown', truncation = temperature]: LogProbKind[], why: string): LogProbs {
  if (temperature === 'raw') return { verdict: 'raw', detail: 'taken before the temperature' };
  if (truncation === 'raw') return { verdict: 'raw', detail: 'taken before top_p, top_k and min_p' };
  if (temperature === 'processed' && truncation === 'processed')
    return { verdict: 'processed', detail: 'of the distribution that is sampled' };
  return { verdict: 'unknown', detail: `not determined: ${why}` };
}

async function sampled(
  { config }: ProbeTarget,
  post: Post,
  prompt: string,
  sampling: Sampling,
): Promise<TokenPosition[]> {
  const messages = [{ role: 'user' as const, content: prompt }];
  const fields = { max_tokens: POSITIONS };
  // For completions `logprobs` is the number of listed tokens; for chats it is a switch, and `top_logprobs` is the number.
  const listed = config.token_mode === 'token-in' ? { logprobs: TOP } : { top_logprobs: TOP };
  const plain = {
    ...config,
    sampling,
    require_tokens: true,
    stream: 'off' as const,
    extra_body: { ...(otherFields(config.extra_body) as typeof config.extra_body), ...listed },
  };
  if (config.token_mode !== 'token-in')
    return positionsOf(await post('chat', chatBody(plain, messages, [], null, fields)));
  const renderer = await openRenderer(config);
  const ids = await renderer.render(messages, [], post);
  return positionsOf(await post('completions', completionBody(plain, ids, fields)));
}

const Answer = z.object({
  choices: z
    .array(
      z.object({
        logprobs: z.union([
          z.object({
            content: z.array(
              z.object({
                token: z.string(),
                logprob: z.number(),
                top_logprobs: z.array(z.object({ token: z.string(), logprob: z.number() })),
              }),
            ),
          }),
          z.object({
            tokens: z.array(z.string()),
            token_logprobs: z.array(z.number().nullable()),
            top_logprobs: z.array(z.record(z.string(), z.number().nullable()).nullable()),
          }),
        ]),
      }),
    )
    .min(1),
});

/** Reads the positions of a chat answer or a completion. Throws when the answer lists no log-probabilities. */
function positionsOf(body: Buffer): TokenPosition[] {
  const answer = Answer.safeParse(JSON.parse(body.toString('utf8')));
  const logprobs = answer.data?.choices[0]?.logprobs;
  if (!logprobs) throw new Error('it lists no likeliest tokens');
  if ('content' in logprobs)
    return logprobs.content.map(({ token, logprob, top_logprobs: top }) => ({
      token,
      logProb: logprob,
      top: new Map(top.map((one) => [one.token, one.logprob])),
    }));
  return logprobs.tokens.map((token, at) => ({
    token,
    logProb: logprobs.token_logprobs[at] ?? Number.NaN,
    top: new Map(
      Object.entries(logprobs.top_logprobs[at] ?? {}).map(([one, logProb]) => [one, logProb ?? Number.NaN]),
    ),
  }));
}
