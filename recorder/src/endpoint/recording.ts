/** The recording of one rollout: which requests the policy answers, what is recorded of them, and when the rollout is over. */
import { randomBytes } from 'node:crypto';
import { createSemaphore, onAbort, RolloutFailure, type Trajectory } from '@swefarm/shared';
import type { AgentAnswer, AgentRequest } from '../dialects/dialect.ts';
import type { Answer, Asked, Sign } from '../lines/answer.ts';
import { composeLines, composeTrajectory } from '../lines/compose.ts';
import { usageOf } from '../lines/tokens.ts';
import { HistoryTree } from '../lines/tree.ts';
import type { NoRoom, RecorderOptions, RolloutOver } from '../recorder.ts';
import type { Outcome } from './delivery.ts';
import { createLimits, type Limits } from './limits.ts';
import { createSampling, HistoryRefused, type Sampling } from './sampling.ts';
import { createStopwatch } from './stopwatch.ts';

const MOST_IN_FLIGHT = 8;
const MOST_WAITING = 64;

/** A request of the agent. `id`: of its answer. Call `delivered` when the answer has reached the agent to its end. */
export type Asking = { id: string; outcome: Promise<Outcome>; delivered(): void };

export class Recording implements AsyncDisposable {
  readonly tree = new HistoryTree();
  readonly #options: RecorderOptions;
  readonly #limits: Limits;
  readonly #sampling: Sampling;
  readonly #slots = createSemaphore(MOST_IN_FLIGHT);
  readonly #inFlight = new Map<Asked, Promise<Outcome>>();
  readonly #stopwatch: ReturnType<typeof createStopwatch>;
  readonly #over = Promise.withResolvers<RolloutOver>();
  readonly #stop = new AbortController();
  readonly #listener: Disposable;
  /** Refuses all requests. */
  #ended: RolloutOver | null = null;
  /** Refuses new requests, and ends when no request is in flight. */
  #ending: RolloutOver | null = null;
  #limit: Trajectory['limit'];
  #composed: Trajectory | null = null;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#limits = createLimits(options);
    this.#sampling = createSampling(options, this.tree);
    this.#stopwatch = createStopwatch(options.pausedSeconds ?? (() => 0));
    this.#over.promise.catch(() => undefined);
    this.#listener = onAbort(options.signal, () => this.close('ended'));
  }

  get over(): Promise<RolloutOver> {
    return this.#over.promise;
  }

  get isEnded(): boolean {
    return this.#ended !== null;
  }

  ask(request: AgentRequest, sign: Sign): Asking {
    const refused = (why: string): Asking => ({
      id: newId(),
      outcome: Promise.resolve({ refused: 'over', message: `the rollout is over: ${why}` }),
      delivered: () => undefined,
    });
    if (this.#ended) return refused(this.#ended);
    const found = this.tree.find(request);
    if (found.again) return this.#repeat(found.again);
    const isWhole = found.match.parent === null;
    const limit = this.#ending ?? this.#limits.reached(isWhole);
    if (limit) {
      if (limit === 'context_limit') this.#limit ??= 'max_tokens';
      this.#endWhenIdle(limit);
      return refused(limit);
    }
    if (this.#inFlight.size >= MOST_IN_FLIGHT + MOST_WAITING) return refused('too many requests at once');
    const asked = this.tree.ask(found, newId(), sign);
    this.#inFlight.set(asked, this.#answer(asked, request.maxTokens));
    return this.#askingOf(asked);
  }

  close(why: RolloutOver): void {
    if (this.#ended) return;
    this.#ended = why;
    // A limit that refused a request remains the reason, although other requests were still in flight.
    this.#over.resolve(why === 'ended' ? (this.#ending ?? why) : why);
    this.#stop.abort(new Error(`the rollout is over: ${why}`));
  }

  async idle(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.all(this.#inFlight.values());
  }

  trajectory(): Trajectory {
    const { trajectory, trainLines } = this.#options;
    this.#composed ??= composeTrajectory(trajectory, composeLines(this.tree.answers, trainLines));
    return this.#limit ? { ...this.#composed, limit: this.#limit } : this.#composed;
  }

  malformedAnswers(): number {
    return this.#limits.malformedAnswers();
  }

  modelSeconds(): number {
    return this.#stopwatch.seconds();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close('ended');
    this.#listener[Symbol.dispose]();
    await this.idle();
  }

  #repeat(asked: Asked): Asking {
    const { answer } = asked;
    if (answer) answer.turn.request.repeated = (answer.turn.request.repeated ?? 0) + 1;
    else asked.joined++;
    return this.#askingOf(asked);
  }

  #askingOf(asked: Asked): Asking {
    const { id, answer } = asked;
    const done = answer && Promise.resolve({ answer: agentAnswer(answer) });
    return {
      id,
      outcome: done ?? (this.#inFlight.get(asked) as Promise<Outcome>),
      delivered: () => {
        if (asked.answer) asked.answer.turn.request.delivered = true;
      },
    };
  }

  async #answer(asked: Asked, maxTokens: number | null): Promise<Outcome> {
    const giveBack = this.#limits.reserve(asked.match.parent === null);
    try {
      return await this.#sample(asked, maxTokens);
    } catch (error) {
      return this.#refusalOf(error);
    } finally {
      giveBack();
      if (!asked.answer) this.tree.drop(asked);
      this.#inFlight.delete(asked);
      if (this.#ending && this.#inFlight.size === 0) this.close(this.#ending);
    }
  }

  async #sample(asked: Asked, maxTokens: number | null): Promise<Outcome> {
    const { signal } = this.#stop;
    using slot = new DisposableStack();
    slot.defer(await this.#slots.acquire(signal));
    this.#options.beforeTurn?.(this.trajectory());
    signal.throwIfAborted();
    slot.use(this.#stopwatch.start());
    const answer = await this.#sampling.sample(asked, this.#limits.answerTokens(maxTokens), signal);
    if ('context_overflow' in answer) return this.#refuseForRoom(answer);
    this.#limits.count(answer.turn, answer.malformed);
    this.#composed = null;
    this.#options.onTurn?.(this.trajectory(), answer.turn);
    return { answer: agentAnswer(answer) };
  }

  /** Throws RolloutFailure `policy_context` for the first request of the rollout. */
  #refuseForRoom({ message, of = 'endpoint' }: NoRoom): Outcome {
    if (this.tree.answers.length === 0) {
      const why = `the first prompt leaves no room for an answer: ${message}`;
      throw new RolloutFailure('policy_context', why.slice(0, 400));
    }
    if (this.#options.card.api.overflow === 'tell')
      return { refused: 'overflow', message: 'the prompt leaves no room for an answer' };
    this.#limit ??= of;
    this.#endWhenIdle('context_limit');
    return { refused: 'over', message: 'the rollout is over' };
  }

  #refusalOf(error: unknown): Outcome {
    const over = { refused: 'over' as const, message: `the rollout is over: ${this.#ended ?? 'ended'}` };
    if (this.#ended) return over;
    const isRefused = error instanceof HistoryRefused;
    // The first request of a rollout shows whether the endpoint accepts requests at all.
    if (isRefused && this.tree.answers.length > 0)
      return { refused: 'bad_request', message: 'the model cannot read this history' };
    this.#over.reject(isRefused ? error.cause : error);
    this.close('ended');
    return over;
  }

  #endWhenIdle(why: RolloutOver): void {
    this.#ending ??= why;
    if (this.#inFlight.size === 0) this.close(this.#ending);
  }
}

const newId = (): string => randomBytes(12).toString('hex');

function agentAnswer({ given: { id, message }, turn }: Answer): AgentAnswer {
  const calls = message.tool_calls?.length ?? 0;
  const finish = turn.finish_reason === 'length' ? 'length' : calls > 0 ? 'tool_calls' : 'stop';
  return { id, message, finish, usage: usageOf(turn) };
}
