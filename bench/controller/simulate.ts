/**
 * Simulates a step of rollouts: a simulated engine and the farm's own admission controller share one simulated clock. A rollout is a sequence
 * of timers: the start of a sandbox, then a request and a command for each turn.
 */
import { createNormal } from '@swefarm/runs';
import type { AdmissionState } from '@swefarm/shared';
import { createScheduler, type EngineOptions, type EngineStats } from '@swefarm/testkit';
import { nextState } from '@swefarm/worker/test/simulated.ts';

/** Log-normal distributions in tokens or seconds: the median, and the standard deviation of the logarithm. */
const SHAPE = {
  turns: { median: 30, sigma: 0.5, least: 3, most: 100 },
  first_prompt: { median: 4_000, sigma: 0.4, least: 1_500, most: 16_000 },
  answer: { median: 200, sigma: 0.8, least: 20, most: 4_000 },
  observation: { median: 500, sigma: 1, least: 20, most: 4_000 },
  command_seconds: { median: 1.5, sigma: 1.2, least: 0.05, most: 120 },
  sandbox_seconds: { median: 8, sigma: 0.3, least: 3, most: 30 },
} as const;
const POLL_MS = 2_000;

/** `off`: all rollouts play at once. A number: at most this many play. `auto`: the controller decides. */
export type Mode = 'off' | 'auto' | number;
export type Simulated = { seconds: number; most_playing: number } & EngineStats;

type Turn = { answer: number; observation: number; commandMs: number };
type Rollout = { id: string; prompt: number; turns: Turn[]; sandboxMs: number };

export function drawRollouts(count: number, seed: number): Rollout[] {
  const normal = createNormal(seed);
  const draw = (of: keyof typeof SHAPE): number => {
    const { median, sigma, least, most } = SHAPE[of];
    return Math.min(most, Math.max(least, median * Math.exp(sigma * normal())));
  };
  return Array.from({ length: count }, (_, at) => ({
    id: `r${at}`,
    prompt: Math.round(draw('first_prompt')),
    sandboxMs: 1000 * draw('sandbox_seconds'),
    turns: Array.from({ length: Math.round(draw('turns')) }, () => ({
      answer: Math.round(draw('answer')),
      observation: Math.round(draw('observation')),
      commandMs: 1000 * draw('command_seconds'),
    })),
  }));
}

export function simulate(options: EngineOptions, rollouts: readonly Rollout[], mode: Mode): Simulated {
  const engine = createScheduler(options);
  const timers: { at: number; run: () => void }[] = [];
  const waiting = [...rollouts];
  const playing: string[] = [];
  /** Functions that start the next turn of suspended rollouts. */
  const suspended = new Map<string, () => void>();
  let now = 0;
  let mostPlaying = 0;
  let state: AdmissionState | null = null;
  const after = (ms: number, run: () => void): void => {
    const at = now + ms;
    const place = timers.findIndex((one) => one.at > at);
    timers.splice(place < 0 ? timers.length : place, 0, { at, run });
  };
  const limit = (): number => {
    if (typeof mode === 'number') return mode;
    return mode === 'off' ? rollouts.length : Math.floor(state?.limit ?? 0);
  };
  const admit = (): void => {
    while (playing.length < limit()) {
      const next = waiting.shift();
      if (!next) break;
      playing.push(next.id);
      after(next.sandboxMs, () => turn(next, 0, next.prompt));
    }
    mostPlaying = Math.max(mostPlaying, playing.length);
    for (const id of playing.slice(0, limit())) {
      const resume = suspended.get(id);
      suspended.delete(id);
      resume?.();
    }
  };
  const turn = (rollout: Rollout, at: number, prompt: number): void => {
    const ask = rollout.turns[at];
    if (!ask) {
      playing.splice(playing.indexOf(rollout.id), 1);
      admit();
      return;
    }
    if (playing.indexOf(rollout.id) >= limit()) {
      suspended.set(rollout.id, () => turn(rollout, at, prompt));
      return;
    }
    const next = prompt + ask.answer + ask.observation;
    const done = (): void => after(ask.commandMs, () => turn(rollout, at + 1, next));
    engine.add({ session: rollout.id, prompt, answer: ask.answer, generated: 0, computed: 0, done });
  };
  const poll = (): void => {
    const { running, waiting: queued, kv_usage, preemptions } = engine.stats();
    const loads = [{ endpoint: 'e', running, waiting: queued, kv_usage, preemptions }];
    const counts = { playing: playing.length, waiting: waiting.length };
    state = nextState(state, { endpoints: 1, loads, refused: 0, ...counts, now });
    admit();
    if (playing.length + waiting.length > 0) after(POLL_MS, poll);
  };
  if (mode === 'auto') poll();
  admit();
  while (playing.length + waiting.length > 0) {
    const due = timers[0]?.at ?? Number.POSITIVE_INFINITY;
    if (engine.isBusy() && now < due) now += engine.step();
    else if (due < Number.POSITIVE_INFINITY) now = Math.max(now, due);
    else throw new Error('the simulation has stopped: no timer and no request is left');
    while ((timers[0]?.at ?? Number.POSITIVE_INFINITY) <= now) timers.shift()?.run();
  }
  return { seconds: now / 1000, most_playing: mostPlaying, ...engine.stats() };
}
