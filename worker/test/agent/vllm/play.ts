/** Rollouts of the real loop against a real server, with checks of their tokens that do not use the ledger. */

import { cumulative } from '@swefarm/policy';
import { AgentConfig, PolicyConfig, RolloutFailure, type Turn } from '@swefarm/shared';
import type { AgentEnd } from '../../../src/agent/agent.ts';
import { runMiniAgent } from '../../../src/agent/loop.ts';
import { depsOf, echoShell, policyAt, scriptedTask } from '../scripted.ts';
import type { Vllm } from './server.ts';

export const TURNS = 20;

let rollouts = 0;

type Play = { policy?: object; agent?: object; signal?: AbortSignal; deps?: object };

/** One rollout of the real loop; the shell echoes. The model's answers are noise, so the format limit is off. */
async function play(
  server: Vllm,
  { policy: change = {}, agent = {}, signal, deps = {} }: Play = {},
): Promise<AgentEnd> {
  const config = PolicyConfig.parse({
    urls: [server.url],
    model: 'tiny',
    token_mode: 'token-in',
    require_tokens: true,
    sampling: { temperature: 1, max_tokens: 64 },
    patience: 5,
    ...change,
  });
  using policy = policyAt(config, { rolloutId: `run.a__b-1.${rollouts++}`, ...deps });
  const task = scriptedTask(AgentConfig.parse({ step_limit: TURNS, format_limit: 10_000, ...agent }));
  return await runMiniAgent(task, depsOf(policy, echoShell(), signal ? { signal } : {}));
}

export const many = (count: number, server: Vllm, each: (index: number) => Play = () => ({})) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      play(server, each(index)).catch((error: unknown) => error as Error),
    ),
  );
export const ended = (results: readonly (AgentEnd | Error)[]): AgentEnd[] =>
  results.map((result) => {
    if (result instanceof Error) throw result;
    return result;
  });
export const failures = (results: readonly (AgentEnd | Error)[]): string[] =>
  results.flatMap((result) => (result instanceof RolloutFailure ? [result.failureClass] : []));

export function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

export const transitions = (ends: readonly AgentEnd[]): number =>
  ends.reduce((sum, { trajectory }) => sum + trajectory.turns.length - 1, 0);

/** Checks contiguity without the ledger: whole prompts, each against the next. */
export function contiguous(turns: readonly Turn[]): boolean {
  let seen: number[] = [];
  return [...cumulative(turns.map(({ tokens }) => tokens))].every(
    ({ prompt, generation, logProbs }, index) => {
      const continues = seen.every((id, at) => prompt[at] === id);
      seen = [...prompt, ...generation];
      const usage = turns[index]?.usage;
      const isCounted =
        usage?.prompt_tokens === prompt.length && usage.completion_tokens === generation.length;
      return (
        continues && isCounted && logProbs.length === generation.length && logProbs.every(Number.isFinite)
      );
    },
  );
}

/** The largest difference between sampled log-probabilities and those of the server for the whole sequence. */
export async function rescored(server: Vllm, { trajectory }: AgentEnd): Promise<number> {
  const last = [...cumulative(trajectory.turns.map(({ tokens }) => tokens))].at(-1);
  if (!last) throw new Error('no tokens');
  const response = await fetch(`${server.url}/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'tiny',
      prompt: [...last.prompt, ...last.generation],
      max_tokens: 1,
      prompt_logprobs: 0,
    }),
  });
  const scored = (await response.json()) as {
    choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[];
  };
  const entries = scored.choices[0]?.prompt_logprobs.slice(last.prompt.length) ?? [];
  must(entries.length === last.generation.length, 'the server scored another number of tokens');
  return Math.max(
    ...Array.from(last.generation, (id, at) =>
      Math.abs((entries[at]?.[String(id)]?.logprob ?? Number.NaN) - (last.logProbs[at] ?? 0)),
    ),
  );
}
