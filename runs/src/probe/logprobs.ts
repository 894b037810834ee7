/**
 * Tests whether an endpoint's log-probabilities are those of the distribution that it samples from.
 *
 * By default vLLM returns those of the model before temperature, top_p, top_k and min_p (`--logprobs-mode processed_logprobs`
 * changes that); a trainer that takes them for the sampled ones learns off-policy. The probe samples one answer plainly, with the
 * likeliest tokens of each position, and a second one coldly. As long as both have the same tokens, their positions correspond, and
 * the plain list predicts the cold token's number: the same (raw), or that of the sharpened distribution (processed).
 * Where the two predictions are close (a certain model, or equally likely tokens) the probe cannot decide.
 */
import { chatBody, completionBody, openRenderer, type Post } from '@swefarm/policy';
import { effectiveSampling, NEUTRAL, otherFields, reshapingKeys, type Sampling } from '@swefarm/shared';
import { z } from 'zod';
import { type ProbeTarget, postTo } from './probewire.ts';

/** One sampled token and the likeliest tokens at its position, with their log-probabilities. */
export type TokenPosition = { token: string; logProb: number; top: ReadonlyMap<string, number> };
export type LogProbKind = 'raw' | 'processed' | 'unknown';
/** What distinguishes the second answer: a low temperature, or only the likeliest token. */
export type Knob = 'temperature' | 'top_k';

const COLD = 0.05;
const TOP = 5;
const PLACES = 32;
/** In nats: numbers this close count as equal (rounding depends on the batch size); larger differences are real. */
const SAME = 0.2;
const APART = 0.5;

/** Compares two answers to the same prompt, the second sampled with the knob. */
export function compare(
  plain: readonly TokenPosition[],
  other: readonly TokenPosition[],
  knob: Knob,
): LogProbKind {
  const votes = new Set<LogProbKind>();
  for (const [at, place] of other.entries()) {
    const beside = plain[at];
    if (!beside) break;
    votes.add(tell(beside.top, place, knob));
    if (beside.token !== place.token) break;
  }
  votes.delete('unknown');
  const [only] = votes;
  return votes.size === 1 && only ? only : 'unknown';
}

function tell(top: ReadonlyMap<string, number>, { token, logProb }: TokenPosition, knob: Knob): LogProbKind {
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

/** Bounds of a token's log-probability at the low temperature; unlisted tokens are at most as likely as the last listed one. */
function sharpened(raw: number, best: number, known: readonly number[]): [least: number, most: number] {
  const sum = (power: number) => known.reduce((total, one) => total + Math.exp((one - best) * power), 0);
  const rest = Math.max(0, Math.exp(-best) - sum(1));
  const tail = rest * Math.exp(((known.at(-1) ?? best) - best) * (1 / COLD - 1));
  const shown = (raw - best) / COLD;
  return [shown - Math.log(sum(1 / COLD) + tail), shown - Math.log(sum(1 / COLD))];
}

const PROMPTS = [
  'Name one thing that one finds in a kitchen.',
  'Write the first sentence of a story.',
  'Say any number.',
];

export type LogProbs = { verdict: LogProbKind; detail: string };

/** Asks twice, and again with other prompts while the answers decide nothing. Never throws for what the endpoint does. */
export async function probeLogProbs(url: string, asker: ProbeTarget): Promise<LogProbs> {
  const post = postTo(url, asker);
  const truncates = reshapingKeys(effectiveSampling(asker.config)).some((key) => TRUNCATING.has(key));
  const knobs: Knob[] = truncates ? ['temperature', 'top_k'] : ['temperature'];
  const verdicts = new Map<Knob, LogProbKind>();
  let why = 'the model is too certain, or too uncertain, of what it says';
  for (const knob of knobs) {
    for (const prompt of PROMPTS) {
      const [plain, other] = [
        NEUTRAL,
        knob === 'temperature' ? { ...NEUTRAL, temperature: COLD } : { ...NEUTRAL, top_k: 1 },
      ];
      try {
        const verdict = compare(
          await sampled(asker, post, prompt, plain),
          await sampled(asker, post, prompt, other),
          knob,
        );
        verdicts.set(knob, verdict);
        if (verdict !== 'unknown') break;
      } catch (error) {
        asker.signal.throwIfAborted();
        why = `asked another way it answers: ${error instanceof Error ? error.message : String(error)}`.slice(
          0,
          200,
        );
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
  return { verdict: 'unknown', detail: `cannot be told: ${why}` };
}

async function sampled(
  { config }: ProbeTarget,
  post: Post,
  prompt: string,
  sampling: Sampling,
): Promise<TokenPosition[]> {
  const messages = [{ role: 'user' as const, content: prompt }];
  const asked = { max_tokens: PLACES };
  // Completions ask for log-probabilities by a number, chats by a number and a switch.
  const listed = config.token_mode === 'token-in' ? { logprobs: TOP } : { top_logprobs: TOP };
  const plain = {
    ...config,
    sampling,
    require_tokens: true,
    stream: 'off' as const,
    extra_body: { ...(otherFields(config.extra_body) as typeof config.extra_body), ...listed },
  };
  if (config.token_mode !== 'token-in')
    return placesOf(await post('chat', chatBody(plain, messages, [], null, asked)));
  const renderer = await openRenderer(config);
  const ids = await renderer.render(messages, [], post);
  return placesOf(await post('completions', completionBody(plain, ids, asked)));
}

const Told = z.object({
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

/** Positions in the form of chats or of completions. Throws when an answer has neither. */
function placesOf(body: Buffer): TokenPosition[] {
  const told = Told.safeParse(JSON.parse(body.toString('utf8')));
  const logprobs = told.data?.choices[0]?.logprobs;
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
