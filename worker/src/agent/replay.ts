/**
 * Continues a rollout from the recorded turns of an earlier attempt. The loop of the agent asks this policy as any other: recorded answers
 * come first, whose commands run again in a fresh sandbox, and then the endpoint is asked. What the model observed must be the same.
 */
import { type RecordedReply, recordedReplies } from '@swefarm/policy';
import {
  type BegunAnswer,
  hashOfMessages,
  type RecordedTurn,
  recordedTurn,
  seenBefore,
  type Trajectory,
} from '@swefarm/shared';
import type { AgentDeps, ContextOverflow, LineReply, LineRequest, Policy, PolicyOfLines } from './agent.ts';
import type { Pause } from './deadline.ts';
import { isSameObservation } from './sameobservation.ts';

/** The observation of a replayed turn differs from the record. `turn` counts from 1. */
export class ReplayDiffers extends Error {
  override readonly name = 'ReplayDiffers';
  readonly turn: number;

  constructor(turn: number, why: string) {
    super(`the replay differs at turn ${turn}: ${why}`);
    this.turn = turn;
  }
}

export type ReplayDeps = {
  /** Recorded turns, in order; may be empty. */
  turns: readonly RecordedTurn[];
  /** Part of the answer after the recorded turns; null: no part. */
  begun: BegunAnswer | null;
  /** Longest time of the replay. */
  mostSeconds: number;
  /** Called with each turn that the endpoint answered, before its commands run. */
  onRecord(turn: RecordedTurn): void;
  /** Called when a request is sent. `read` returns the received part of the answer. */
  onBegin(read: () => BegunAnswer | null): void;
  /** Called when the last recorded answer was given. */
  onOver(seconds: number): void;
  /** Called when `begun` is continued, with its number of tokens. */
  onResumed(tokens: number): void;
};

export type Replay = Required<Pick<AgentDeps, 'beforeTurn' | 'onAnswer'>> & {
  policy: Policy;
  /** Whether the turn, counted from 1, was recorded by an earlier attempt. */
  has(turn: number): boolean;
  /** Throws ReplayDiffers if the agent ended before all recorded answers were given. */
  requireOver(): void;
};

type Ask = (request: LineRequest) => Promise<LineReply | ContextOverflow>;

/** `beforeTurn` throws {@link ReplayDiffers}, and replaces equal observations by the recorded ones, whose tokens the model has seen. */
export function openReplay(live: PolicyOfLines, deps: ReplayDeps): Replay {
  const { turns } = deps;
  const clock = startReplayClock(live.pause, turns.length > 0);
  const answers = openAnswers(deps, clock);
  let given = 0;
  let replies: Generator<RecordedReply> | null = null;
  let ask: Ask | null = null;

  const giveRecorded = (recorded: RecordedTurn, start: number) => {
    replies ??= recordedReplies(live.config, turns, start);
    const { after, ...reply } = replies.next().value as RecordedReply;
    given++;
    clock.setTo(recorded.at);
    if (given === turns.length) {
      ask = live.openLine(after);
      deps.onOver(clock.replaySeconds());
      clock.run();
    }
    const { model_seconds: seconds, policy_version, asked, spans, endpoint = live.endpoint } = recorded.turn;
    return {
      ...{ ...reply, seconds, policy_version, endpoint },
      ...(asked ? { asked } : {}),
      ...(spans ? { spans } : {}),
    };
  };
  return {
    policy: {
      get endpoint() {
        return live.endpoint;
      },
      config: live.config,
      pause: clock.pause,
      throughput: live.throughput,
      detokenize: live.detokenize,
      async complete(messages, tools, signal) {
        const recorded = turns[given];
        if (recorded) return giveRecorded(recorded, messages.length);
        ask ??= live.openLine();
        return await answers.ask(ask, { messages, tools, signal });
      },
    },
    has: (turn) => turn <= turns.length,
    beforeTurn(trajectory) {
      const recorded = turns[given];
      if (!recorded) return answers.see(trajectory);
      const why = restore(recorded, trajectory);
      if (why !== null) throw new ReplayDiffers(given, why);
      if (clock.replaySeconds() > deps.mostSeconds)
        throw new ReplayDiffers(given, `its commands took longer than ${deps.mostSeconds} s`);
      clock.setTo(recorded.at - recorded.turn.model_seconds);
    },
    onAnswer(trajectory) {
      const { length } = trajectory.turns;
      if (length > turns.length) deps.onRecord(recordedTurn(trajectory, length - 1, clock.seconds()));
    },
    requireOver() {
      if (given < turns.length) throw new ReplayDiffers(given, 'the agent ended there');
    },
  };
}

/** Requests the answers after the recorded turns. The first one continues the part that an earlier attempt received. */
function openAnswers(
  deps: Pick<ReplayDeps, 'begun' | 'onBegin' | 'onResumed'>,
  clock: ReturnType<typeof startReplayClock>,
) {
  let { begun } = deps;
  let played: Trajectory | null = null;
  return {
    see(trajectory: Trajectory): void {
      played = trajectory;
      // If only the observations after the last turn differ, the replayed turns stay valid, and only the part is dropped.
      if (begun && restore(begun, trajectory) !== null) begun = null;
    },
    async ask(line: Ask, request: LineRequest): Promise<LineReply | ContextOverflow> {
      const [part, trajectory] = [begun, played];
      begun = null;
      const onBegin: LineRequest['onBegin'] = (read) =>
        deps.onBegin(() => {
          const received = trajectory && read();
          return received && { ...seenBefore(trajectory, trajectory.turns.length), ...received };
        });
      if (!part) return await line({ ...request, onBegin });
      // The time limit includes the part at once, because the rest of the answer may take long.
      const onResumed = () => {
        clock.add(part.seconds);
        deps.onResumed(part.ids.length);
      };
      return await line({ ...request, onBegin, begun: part, onResumed });
    },
  };
}

/** Replaces the observations since the last answer by the recorded ones; returns why they differ, or null. */
function restore(
  { start, observed, exit_codes }: Pick<RecordedTurn, 'start' | 'observed' | 'exit_codes'>,
  { messages, turns }: Trajectory,
): string | null {
  const last = turns.at(-1);
  if (!last) return hashOfMessages(messages) === start ? null : 'the first messages are others';
  const seen = messages.slice(last.message + 1);
  const isSame =
    seen.length === observed.length &&
    observed.every(
      ({ role, content, tool_call_id }, at) =>
        seen[at]?.role === role &&
        seen[at]?.tool_call_id === tool_call_id &&
        isSameObservation(content, seen[at]?.content ?? null),
    );
  if (!isSame) return 'a command printed something else';
  const codes = last.commands.map((command) => command.exit_code);
  if (codes.join() !== exit_codes.join()) return `exit codes are ${codes.join()}, were ${exit_codes.join()}`;
  messages.splice(last.message + 1, seen.length, ...observed);
  return null;
}

/** The agent's clock: during the replay it stands at the recorded times, so the commands count once. */
function startReplayClock(inner: Pause, replays: boolean) {
  const started = performance.now() / 1000;
  const pausedBefore = inner.seconds();
  const elapsed = () => performance.now() / 1000 - started;
  const listeners = new Set<() => void>();
  let recorded = 0;
  let running = !replays;
  /** Seconds to add to the policy's pause after the replay. */
  let offset = 0;
  const pausedSeconds = (): number =>
    running ? inner.seconds() + offset : pausedBefore + elapsed() - recorded;
  const pause: Pause = {
    get paused() {
      return !running || inner.paused;
    },
    seconds: pausedSeconds,
    onChange(listener) {
      listeners.add(listener);
      const stop = inner.onChange(listener);
      return () => {
        listeners.delete(listener);
        stop();
      };
    },
  };
  return {
    pause,
    /** Returns the seconds of the agent so far, without pauses. */
    seconds: () => elapsed() - (pausedSeconds() - pausedBefore),
    replaySeconds: elapsed,
    setTo(seconds: number): void {
      recorded = seconds;
    },
    /** Adds seconds of an earlier attempt to the clock. */
    add(seconds: number): void {
      offset -= seconds;
      for (const listener of listeners) listener();
    },
    run(): void {
      offset = pausedSeconds() - inner.seconds();
      running = true;
      for (const listener of listeners) listener();
    },
  };
}
