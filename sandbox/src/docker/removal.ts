/**
 * Removes containers of an engine. Code in a container can delay a removal, so each wait has a limit. The engine continues the removal
 * and gets no second request meanwhile: a later caller (the reaper) waits for the same removal.
 */
import { createSingleFlight, type Semaphore, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { inTime, isLate, killWithoutEngine } from './deadline.ts';
import { whileRemoved } from './stoppedstarts.ts';

const ATTEMPTS = 5;
/** Attempts if the first one timed out: killing the container's processes may have freed the engine for the second one. */
const LATE_ATTEMPTS = 2;

/** Returns a function that removes a container by id and ignores a missing container. @throws RolloutFailure engine_unreachable */
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
        // The removal fails while a start of the container is under way.
        await sleep(200 * attempt);
      }
    }
  };
}
