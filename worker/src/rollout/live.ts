/**
 * Tells those who watch what a rollout does while it runs. It costs the rollout nothing: one write at a time, never
 * waited for, and what fails is let go.
 */
import { type Clock, errorMessage, type Live, type LiveTurn, type Trajectory } from '@swefarm/shared';
import type { Logger } from 'pino';

export type LiveDeps = {
  live: Live;
  clock: Pick<Clock, 'now'>;
  worker: string;
  node: string;
  /** Latest turns that are kept; 0: nothing is told. */
  keep: number;
  log: Logger;
};

export type LiveTrace = {
  stage(name: string): void;
  /** What was said and done so far; only what is new is sent. */
  turns(trajectory: Trajectory): void;
  /** Nothing is told after this. */
  end(): Promise<void>;
};

export function startLive(deps: LiveDeps, rolloutId: string, attempt: number): LiveTrace {
  const { live, clock, worker, node, keep, log } = deps;
  const claimed_at = clock.now();
  let stage = 'starting';
  let trajectory: Trajectory | null = null;
  let sent = 0;
  let dirty = false;
  let over = keep === 0;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    while (dirty && !over) {
      dirty = false;
      const said = trajectory?.turns.length ?? 0;
      await live.mark({
        ...{ rollout_id: rolloutId, attempt, worker, node, stage, claimed_at },
        turns: said,
        at: clock.now(),
      });
      for (sent = Math.max(sent, said - keep); trajectory && sent < said && !over; sent++) {
        await live.turn(rolloutId, turnOf(trajectory, sent, attempt, clock.now()), keep);
      }
    }
  };
  const changed = (): void => {
    if (over || dirty) return;
    dirty = true;
    writing = writing.then(write).catch((error: unknown) => {
      log.debug({ err: errorMessage(error) }, 'nobody can watch this rollout');
    });
  };
  changed();
  return {
    stage(name) {
      stage = name;
      changed();
    },
    turns(next) {
      trajectory = next;
      changed();
    },
    async end() {
      if (over) return;
      over = true;
      await writing;
      await live.end(worker, rolloutId).catch((error: unknown) => {
        log.debug({ err: errorMessage(error) }, 'the live turns go with their life time');
      });
    },
  };
}

/** Turn `index`: the answer and what followed; the first also has what was said before it. */
function turnOf({ turns, messages }: Trajectory, index: number, attempt: number, at: number): LiveTurn {
  const turn = turns[index];
  if (!turn) throw new RangeError(`there is no turn ${index}`);
  const from = index === 0 ? 0 : turn.message;
  const { finish_reason, model_seconds, usage, policy_version, commands } = turn;
  return {
    attempt,
    turn: index + 1,
    at,
    messages: messages.slice(from, turns[index + 1]?.message),
    answer: turn.message - from,
    ...{ finish_reason, model_seconds, usage, policy_version, commands },
  };
}
