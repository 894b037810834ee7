/**
 * Removes containers of an engine, which code in a container can delay: each wait for a removal has a limit. The engine goes on
 * with it and gets no second request meanwhile; a later caller (the reaper) waits for the same removal.
 */
import { createSingleFlight, type Semaphore, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { inTime, isLate, killWithoutEngine } from './deadline.ts';
import { whileRemoved } from './stoppedstarts.ts';

const ATTEMPTS = 5;
/** The second attempt is for a container that was released by the kill after the first was late. */
const LATE_ATTEMPTS = 2;

/** Removes containers by id; no error when one is already gone. @throws RolloutFailure engine_unreachable */
export function createRemoval(
  docker: Docker,
  slots: Semaphore,
  answerMs?: number,
): (id: string) => Promise<void> {
  const removals = createSingleFlight<void>();
  const remove = (id: string): Promise<void> =>
    whileRemoved(id, docker.getContainer(id).remove({ force: true, v: true }));
  const ask = (id: string): Promise<void> =>
    inTime(
      removals.run(id, () => remove(id)),
      answerMs,
    );
  return async (id) => {
    for (let attempt = 1; ; attempt++) {
      try {
        // Waiting for a removal under way takes no slot.
        await (removals.isUnderWay(id) ? ask(id) : slots.run(() => ask(id)));
        return;
      } catch (error) {
        if (statusCode(error) === 404) return;
        const late = isLate(error);
        if (late) await killWithoutEngine(id);
        if (attempt >= (late ? LATE_ATTEMPTS : ATTEMPTS))
          throw engineFailure(error, 'engine_unreachable', `removing ${id}`);
        // A start may still be under way.
        await sleep(200 * attempt);
      }
    }
  };
}
