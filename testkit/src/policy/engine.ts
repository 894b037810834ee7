/**
 * A stand-in for the scheduler of vLLM 0.32 (V1): continuous batching with a KV cache of fixed size, chunked prefill and prefix caching.
 * When running requests outgrow the cache, the last of them is preempted, and its tokens are computed again. The time of a step grows
 * with its tokens. Time is simulated, so a busy machine delays answers but does not change the schedule.
 */
import { onAbort, sleep } from '@swefarm/shared';
import { z } from 'zod';

export const EngineOptions = z.strictObject({
  /** Tokens for which the KV cache has room. */
  kv_tokens: z.number().int().positive(),
  /** Requests that run at once (`max_num_seqs`), and tokens of one step (`max_num_batched_tokens`). */
  max_seqs: z.number().int().positive().default(256),
  step_tokens: z.number().int().positive().default(2048),
  /** Parts of a step's time: a constant; per generating request; per token of context that is read; per computed token of a prompt. */
  step_ms: z.number().nonnegative().default(20),
  request_ms: z.number().nonnegative().default(0.1),
  context_token_ms: z.number().nonnegative().default(0),
  prefill_token_ms: z.number().nonnegative().default(0.05),
  /** Tokens that the engine computes for each token of prompt and answer, so that short texts load it as long ones do. */
  scale: z.number().positive().default(1),
  /** Simulated time for each unit of real time. */
  speed: z.number().positive().default(1),
});
export type EngineOptions = z.infer<typeof EngineOptions>;

export type EngineStats = {
  running: number;
  waiting: number;
  kv_usage: number;
  preemptions: number;
  /** Tokens of preempted requests, which are computed again. */
  preempted_tokens: number;
  /** Tokens of prompts that were computed, and that the prefix cache had. */
  prefilled_tokens: number;
  reused_tokens: number;
  generated_tokens: number;
};

type Request = {
  session: string;
  prompt: number;
  answer: number;
  generated: number;
  /** Tokens in the KV cache. */
  computed: number;
  done: () => void;
};

export type Engine = ReturnType<typeof openEngine>;

export function openEngine(options: EngineOptions) {
  const state = createScheduler(options);
  let clockMs = 0;
  let ticking = false;
  const tick = async (): Promise<void> => {
    ticking = true;
    let realMs = performance.now();
    while (state.isBusy()) {
      const now = performance.now();
      clockMs = Math.min(clockMs, 0) + (now - realMs) * options.speed;
      realMs = now;
      // The clock is negative while a step takes longer than the time that has passed.
      while (clockMs >= 0 && state.isBusy()) clockMs -= state.step();
      await sleep(Math.max(1, -clockMs / options.speed));
    }
    clockMs = 0;
    ticking = false;
  };
  return {
    stats: state.stats,
    /** Resolves when the answer is generated, or the request is aborted. */
    async run(session: string, prompt: number, answer: number, signal: AbortSignal): Promise<void> {
      const done = Promise.withResolvers<void>();
      const sized = (tokens: number): number => Math.max(1, Math.round(tokens * options.scale));
      const request = { session, prompt: sized(prompt), answer: sized(answer), generated: 0, computed: 0 };
      const queued: Request = { ...request, done: done.resolve };
      state.add(queued);
      using _gone = onAbort(signal, () => {
        state.remove(queued);
        done.resolve();
      });
      if (!ticking) void tick();
      await done.promise;
    },
  };
}

/** Returns the scheduler without a clock: each call of `step` simulates one step. */
export function createScheduler(options: EngineOptions) {
  const { kv_tokens: room, max_seqs, step_tokens } = options;
  const waiting: Request[] = [];
  const running: Request[] = [];
  /** Evictable tokens by session, the least recently used first. */
  const cached = new Map<string, number>();
  const counts = {
    preemptions: 0,
    preempted_tokens: 0,
    prefilled_tokens: 0,
    reused_tokens: 0,
    generated_tokens: 0,
  };
  let used = 0;
  let evictable = 0;

  /** Removes tokens of a session from the cache, the last ones first. Returns their number. */
  const evict = (session: string, most = Number.POSITIVE_INFINITY): number => {
    const known = cached.get(session) ?? 0;
    const tokens = Math.min(known, most);
    if (tokens === known) cached.delete(session);
    else cached.set(session, known - tokens);
    evictable -= tokens;
    return tokens;
  };
  /** Takes room for tokens of a request; false if running requests fill the cache. */
  const allocate = (request: Request, tokens: number): boolean => {
    if (room - used < tokens) return false;
    let missing = tokens - (room - used - evictable);
    for (const session of cached.keys()) {
      if (missing <= 0) break;
      missing -= evict(session, missing);
    }
    used += tokens;
    request.computed += tokens;
    return true;
  };
  const release = (request: Request, list: Request[]): void => {
    list.splice(list.indexOf(request), 1);
    used -= request.computed;
  };
  const preemptLast = (): void => {
    const last = running.at(-1);
    if (!last) return;
    release(last, running);
    counts.preemptions++;
    counts.preempted_tokens += last.computed;
    last.computed = 0;
    waiting.unshift(last);
  };
  /** Returns the computed tokens of prompts. */
  const prefill = (request: Request, budget: number): number => {
    const chunk = Math.min(request.prompt + request.generated - request.computed, budget);
    if (chunk <= 0 || !allocate(request, chunk)) return 0;
    counts.prefilled_tokens += chunk;
    return chunk;
  };
  const generate = (request: Request): void => {
    while (running.includes(request) && !allocate(request, 1)) preemptLast();
    if (!running.includes(request)) return;
    request.generated++;
    counts.generated_tokens++;
    if (request.generated < request.answer) return;
    release(request, running);
    evict(request.session);
    cached.set(request.session, request.computed);
    evictable += request.computed;
    request.done();
  };
  const admit = (budget: number): number => {
    let spent = 0;
    while (running.length < max_seqs && spent < budget) {
      const [next] = waiting;
      if (!next) break;
      const known = Math.min(cached.get(next.session) ?? 0, next.prompt - 1);
      const chunk = Math.min(next.prompt + next.generated - known, budget - spent);
      if (room - used < known + chunk) break;
      waiting.shift();
      running.push(next);
      evict(next.session);
      used += known;
      next.computed = known;
      counts.reused_tokens += known;
      spent += prefill(next, budget - spent);
    }
    return spent;
  };
  return {
    isBusy: () => running.length + waiting.length > 0,
    add: (request: Request) => void waiting.push(request),
    remove(request: Request): void {
      if (running.includes(request)) release(request, running);
      else if (waiting.includes(request)) waiting.splice(waiting.indexOf(request), 1);
    },
    /** Plays one step and returns its simulated milliseconds. */
    step(): number {
      const before = counts.preemptions;
      const decoding = running.filter(({ prompt, generated, computed }) => computed >= prompt + generated);
      for (const request of decoding) if (running.includes(request)) generate(request);
      const read = decoding.reduce((sum, { computed }) => sum + computed, 0);
      let spent = 0;
      for (const request of [...running]) spent += prefill(request, step_tokens - decoding.length - spent);
      // As in vLLM, no request starts in a step with a preemption.
      if (counts.preemptions === before) spent += admit(step_tokens - decoding.length - spent);
      const { step_ms, request_ms, context_token_ms, prefill_token_ms } = options;
      return step_ms + request_ms * decoding.length + context_token_ms * read + prefill_token_ms * spent;
    },
    stats: (): EngineStats => ({
      running: running.length,
      waiting: waiting.length,
      kv_usage: used / room,
      ...counts,
    }),
  };
}

/** Returns the metrics in the text format of Prometheus, with the names of vLLM. */
export function engineMetrics(
  model: string,
  { running, waiting, kv_usage, preemptions }: EngineStats,
): string {
  const line = (name: string, type: string, value: number): string =>
    `# TYPE vllm:${name} ${type}\nvllm:${name}{engine="0",model_name="${model}"} ${value}\n`;
  return [
    line('num_requests_running', 'gauge', running),
    line('num_requests_waiting', 'gauge', waiting),
    line('kv_cache_usage_perc', 'gauge', kv_usage),
    line('num_preemptions_total', 'counter', preemptions),
  ].join('');
}
