/** Scores rollouts with a verifier: a model whose log-probabilities of yes and no are compared, or any HTTP server. */
import { exponentialBackoff, retry, type Secret, SwefarmError } from '@swefarm/shared';
import { z } from 'zod';

export type Judgeable = {
  rollout_id: string;
  instance_id: string;
  messages: readonly { role: string; content: string | null }[];
  patch: string | null;
};

export type Verifier = {
  /** Form and model (or URL) of the verifier; files of scores contain this name. */
  name: string;
  score(rollout: Judgeable, signal: AbortSignal): Promise<number>;
};

export type VerifierOptions = {
  /** Base URL of an OpenAI-compatible server; for the form `http`, the URL to which rollouts are posted. */
  url: string;
  model: string;
  key: Secret | null;
  /** Prompt with the placeholders {trajectory} and {patch}. */
  prompt: string;
  timeoutMs: number;
};

export const VERIFIER_FORMS = ['chat', 'completions', 'http'] as const;
type VerifierForm = (typeof VERIFIER_FORMS)[number];

export const DEFAULT_PROMPT = `Below is the conversation of an agent that worked on an issue of a software repository, and the patch that it left.

<conversation>
{trajectory}
</conversation>

<patch>
{patch}
</patch>

Does the patch resolve the issue? Answer with YES or NO only.
Answer: `;

export function createVerifier(form: VerifierForm, options: VerifierOptions): Verifier {
  const { route, bodyOf, scoreIn } = FORMS[form];
  return {
    name: form === 'http' ? `http ${options.url}` : `${form} ${options.model}`,
    score: async (rollout, signal) =>
      scoreIn(await post(`${options.url}${route}`, bodyOf(options, rollout), options, signal)),
  };
}

const TOP = 20;

/** Answers with the log-probabilities of the first token, in the two protocols of OpenAI. */
const Chat = z.object({
  choices: z
    .array(
      z.object({
        logprobs: z.object({
          content: z
            .array(z.object({ top_logprobs: z.array(z.object({ token: z.string(), logprob: z.number() })) }))
            .min(1),
        }),
      }),
    )
    .min(1),
});
const Completion = z.object({
  choices: z
    .array(
      z.object({ logprobs: z.object({ top_logprobs: z.array(z.record(z.string(), z.number())).min(1) }) }),
    )
    .min(1),
});
const Score = z.object({ score: z.number() });

type Form = {
  route: string;
  bodyOf(options: VerifierOptions, rollout: Judgeable): unknown;
  scoreIn(answer: unknown): number;
};

const FORMS: Readonly<Record<VerifierForm, Form>> = {
  chat: {
    route: '/chat/completions',
    bodyOf: (options, rollout) => ({
      model: options.model,
      messages: [{ role: 'user', content: promptOf(options, rollout) }],
      ...{ max_tokens: 1, temperature: 0, logprobs: true, top_logprobs: TOP },
    }),
    scoreIn: (answer) =>
      probabilityOfYes(read(Chat, answer).choices[0]?.logprobs.content[0]?.top_logprobs ?? []),
  },
  completions: {
    route: '/completions',
    bodyOf: (options, rollout) => ({
      model: options.model,
      prompt: promptOf(options, rollout),
      ...{ max_tokens: 1, temperature: 0, logprobs: TOP },
    }),
    scoreIn(answer) {
      const top = read(Completion, answer).choices[0]?.logprobs.top_logprobs[0] ?? {};
      return probabilityOfYes(Object.entries(top).map(([token, logprob]) => ({ token, logprob })));
    },
  },
  http: { route: '', bodyOf: (_, rollout) => rollout, scoreIn: (answer) => read(Score, answer).score },
};

/** Returns P(yes) / (P(yes) + P(no)). Tokens count in any case and with surrounding blanks. Throws SwefarmError if both are absent. */
export function probabilityOfYes(top: readonly { token: string; logprob: number }[]): number {
  const sum = (word: string): number =>
    top.reduce(
      (all, { token, logprob }) => (token.trim().toLowerCase() === word ? all + Math.exp(logprob) : all),
      0,
    );
  const yes = sum('yes');
  const no = sum('no');
  if (yes + no > 0) return yes / (yes + no);
  const first = top.map(({ token }) => JSON.stringify(token)).slice(0, 3);
  throw new SwefarmError(
    'verifier_says_neither',
    `neither yes nor no is among its likeliest tokens (${first.join(', ') || 'the answer has none'})`,
  );
}

function promptOf({ prompt }: VerifierOptions, { messages, patch }: Judgeable): string {
  const trajectory = messages.map(({ role, content }) => `[${role}]\n${content ?? ''}`).join('\n\n');
  // Both placeholders are replaced in one pass, because the inserted texts may contain placeholders.
  return prompt.replace(/\{(trajectory|patch)\}/g, (_, name) =>
    name === 'patch' ? (patch ?? '') : trajectory,
  );
}

const TRIES = 4;

async function post(
  url: string,
  body: unknown,
  { key, timeoutMs }: VerifierOptions,
  signal: AbortSignal,
): Promise<unknown> {
  const once = async (): Promise<unknown> => {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      headers: {
        'content-type': 'application/json',
        ...(key ? { authorization: `Bearer ${key.reveal()}` } : {}),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await answer.text();
    if (!answer.ok) {
      const passing = answer.status === 429 || answer.status >= 500;
      const message = `it answers ${answer.status}: ${text.slice(0, 200)}`;
      throw new SwefarmError(`verifier_${answer.status}`, message, { retryable: passing });
    }
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new SwefarmError('verifier_answer', `its answer is no JSON: ${text.slice(0, 80)}`, {
        cause: error,
      });
    }
  };
  try {
    return await retry(once, {
      ...{ pauseMs: exponentialBackoff(500, 10_000), tries: TRIES, signal },
      isPassing: (error) => !signal.aborted && (!(error instanceof SwefarmError) || error.retryable),
    });
  } catch (error) {
    if (error instanceof SwefarmError || signal.aborted) throw error;
    const { cause, message } = error as Error & { cause?: Error };
    throw new SwefarmError('verifier_unreachable', `it cannot be reached (${cause?.message ?? message})`, {
      cause: error,
    });
  }
}

function read<T>(schema: z.ZodType<T>, answer: unknown): T {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new SwefarmError('verifier_answer', `its answer lacks ${issue?.path.join('.')}: ${issue?.message}`);
}
