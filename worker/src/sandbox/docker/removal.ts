/**
 * Removals by an engine that may be held up by what is in a container: each is waited for only so long. The engine goes on with it,
 * is not asked for it again beside, and whoever asks later (the reaper) waits for the same.
 */
import type Docker from 'dockerode';
import type { createGate } from '../gate.ts';
import { inTime, isLate, killFromOutside } from './deadline.ts';
import { engineFailure, statusCode } from './errors.ts';

const ATTEMPTS = 5;
/** The second is for what was let go when the first was too late. */
const LATE_ATTEMPTS = 2;

/** Of containers by id; no error when one is already gone. @throws RolloutFailure engine_unreachable */
export function createRemoval(
  docker: Docker,
  gate: ReturnType<typeof createGate>,
  answerMs?: number,
): (id: string) => Promise<void> {
  const asked = new Map<string, Promise<void>>();
  const ask = (id: string): Promise<void> => {
    const call =
      asked.get(id) ??
      docker
        .getContainer(id)
        .remove({ force: true, v: true })
        .finally(() => asked.delete(id));
    asked.set(id, call);
    return inTime(call, answerMs);
  };
  return async (id) => {
    for (let attempt = 1; ; attempt++) {
      try {
        // Who waits for one under way takes no place from others.
        await (asked.has(id) ? ask(id) : gate(() => ask(id)));
        return;
      } catch (error) {
        if (statusCode(error) === 404) return;
        const late = isLate(error);
        if (late) await killFromOutside(id);
        if (attempt >= (late ? LATE_ATTEMPTS : ATTEMPTS))
          throw engineFailure(error, 'engine_unreachable', `removing ${id}`);
        // It may meet a start still under way.
        await new Promise((resolve) => setTimeout(resolve, 200 * attempt));
      }
    }
  };
}
