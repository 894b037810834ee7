/**
 * Removes containers of an engine, which code in a container can hold up: each removal is waited for only so long. The engine goes on
 * with it and is not asked again meanwhile; whoever asks later (the reaper) waits for the same removal.
 */
import { createSingleFlight, type Semaphore, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { inTime, isLate, killWithoutEngine } from './deadline.ts';

const ATTEMPTS = 5;
/** The second is for what was let go when the first was too late. */
const LATE_ATTEMPTS = 2;

/** Of containers by id; no error when one is already gone. @throws RolloutFailure engine_unreachable */
export function createRemoval(
  docker: Docker,
  slots: Semaphore,
  answerMs?: number,
): (id: string) => Promise<void> {
  const removals = createSingleFlight<void>();
  const remove = (id: string): Promise<void> => docker.getContainer(id).remove({ force: true, v: true });
  const ask = (id: string): Promise<void> =>
    inTime(
      removals.run(id, () => remove(id)),
      answerMs,
    );
  return async (id) => {
    for (let attempt = 1; ; attempt++) {
      try {
        // Who waits for one under way takes no place from others.
        await (removals.isUnderWay(id) ? ask(id) : slots.run(() => ask(id)));
        return;
      } catch (error) {
        if (statusCode(error) === 404) return;
        const late = isLate(error);
        if (late) await killWithoutEngine(id);
        if (attempt >= (late ? LATE_ATTEMPTS : ATTEMPTS))
          throw engineFailure(error, 'engine_unreachable', `removing ${id}`);
        // It may meet a start still under way.
        await sleep(200 * attempt);
      }
    }
  };
}
