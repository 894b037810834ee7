/**
 * Calls to an engine that concern one container. Code inside can stop the process with which the engine starts a command (`kill -STOP -1`
 * in a loop); until that process goes on, the engine answers no call about the container, not even its removal.
 */
import { createSingleFlight, RolloutFailure } from '@swefarm/shared';
import type Docker from 'dockerode';
import { allPids, readProcessFile } from '../namespaces/processes.ts';
import { inTime, killIfOwn, membersOf, NOT_YET_COMMAND } from './deadline.ts';

/** How often a call without an answer is looked after. */
const LOOK_MS = 5_000;

/** Containers in which code has stopped a start, by id, until they are removed. */
const blocked = new Set<string>();
const scans = createSingleFlight<Set<number>>();

/** Stopped processes of engines' starts in all containers. One scan serves all callers. */
const findStoppedStarts = (): Promise<Set<number>> =>
  scans.run('', async () => {
    const stopped = new Set<number>();
    for (const pid of await allPids()) {
      // `PID (NAME) STATE ...`
      const [, name, state] = /^\d+ \((.*)\) (\S)/s.exec(await readProcessFile(pid, 'stat')) ?? [];
      if (state === 'T' && NOT_YET_COMMAND.test(name ?? '')) stopped.add(pid);
    }
    return stopped;
  });

/**
 * Kills all processes of a container but its first when code inside has stopped a start there. Returns whether that ever happened.
 * @param id the whole one
 */
export async function freeStarts(id: string): Promise<boolean> {
  const stopped = await findStoppedStarts();
  if (stopped.size === 0) return blocked.has(id);
  const members = await membersOf(id);
  if (!members.some((pid) => stopped.has(pid))) return blocked.has(id);
  blocked.add(id);
  for (const pid of members) {
    const isFirst = /^NSpid:(?:\t\d+)+\t1$/m.test(await readProcessFile(pid, 'status'));
    if (!isFirst) killIfOwn(pid);
  }
  return true;
}

/** Looks after a call about a container until it is disposed of. */
function watchStarts(id: string, onFreed: () => void): Disposable {
  const look = setInterval(async () => {
    if (await freeStarts(id)) onFreed();
  }, LOOK_MS);
  return { [Symbol.dispose]: () => clearInterval(look) };
}

/** @throws RolloutFailure `sandbox_lost` when code in the container has stopped a start there */
export function requireFreeStarts({ id }: Pick<Docker.Container, 'id'>): void {
  if (blocked.has(id))
    throw new RolloutFailure(
      'sandbox_lost',
      'code in the container stopped the process that starts commands',
    );
}

/** {@link inTime} for a call about a container. @throws RolloutFailure `sandbox_lost` when code inside has stopped a start there */
export async function answerAbout<T>(
  container: Pick<Docker.Container, 'id'>,
  call: Promise<T>,
  answerMs?: number,
): Promise<T> {
  const { promise: freed, resolve } = Promise.withResolvers<void>();
  using _watch = watchStarts(container.id, resolve);
  return await Promise.race([
    inTime(call, answerMs),
    freed.then(() => requireFreeStarts(container) as never),
  ]);
}

/** Waits for a container's removal, however long it takes. */
export async function whileRemoved(id: string, removal: Promise<void>): Promise<void> {
  using _watch = watchStarts(id, () => undefined);
  await removal;
  blocked.delete(id);
}
