/**
 * Calls to an engine that concern one container. Code inside can stop the process with which the engine starts a command (`kill -STOP
 * -1` in a loop). Until that process continues, the engine answers no call about the container, not even its removal.
 */
import { createSingleFlight, RolloutFailure, readProcessStat } from '@swefarm/shared';
import type Docker from 'dockerode';
import { allPids, isFirstProcess, readProcessFile } from '../namespaces/processes.ts';
import { inTime, killIfOwn, membersOf, NOT_YET_COMMAND } from './deadline.ts';

/** Interval of the checks for stopped processes during a call. */
const LOOK_MS = 5_000;

/** Ids of containers in which code stopped the start of a command. The removal of a container deletes its id. */
const blocked = new Set<string>();
const scans = createSingleFlight<Set<number>>();

/** Finds the stopped processes with which engines start commands, in all containers. Concurrent callers share one scan. */
const findStoppedStarts = (): Promise<Set<number>> =>
  scans.run('', async () => {
    const stopped = new Set<number>();
    for (const pid of await allPids()) {
      if (NOT_YET_COMMAND.test(await readProcessFile(pid, 'comm')) && readProcessStat(pid)?.state === 'T')
        stopped.add(pid);
    }
    return stopped;
  });

/**
 * Kills all processes of a container except the first, if code inside stopped the start of a command. Returns whether code ever did so.
 * @param id full id of the container
 */
export async function freeStarts(id: string): Promise<boolean> {
  const stopped = await findStoppedStarts();
  if (stopped.size === 0) return blocked.has(id);
  const members = await membersOf(id);
  if (!members.some((pid) => stopped.has(pid))) return blocked.has(id);
  blocked.add(id);
  for (const pid of members) {
    if (!(await isFirstProcess(pid))) killIfOwn(pid);
  }
  return true;
}

/** Checks for stopped starts at intervals until the handle is disposed of. A check that fails (no free file descriptor) is repeated. */
function watchStarts(id: string, onFreed: () => void): Disposable {
  return setInterval(() => {
    freeStarts(id).then(
      (isFreed) => isFreed && onFreed(),
      () => undefined,
    );
  }, LOOK_MS);
}

/** @throws RolloutFailure `sandbox_lost` if code in the container has stopped the start of a command */
export function requireFreeStarts({ id }: Pick<Docker.Container, 'id'>): void {
  if (blocked.has(id))
    throw new RolloutFailure(
      'sandbox_lost',
      'code in the container stopped the process that starts commands',
    );
}

/** Waits for a call as {@link inTime} does. @throws RolloutFailure `sandbox_lost` if code inside stops the start of a command */
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

/** Waits for a container's removal, however long it takes, and forgets the container. */
export async function whileRemoved(id: string, removal: Promise<void>): Promise<void> {
  using _watch = watchStarts(id, () => undefined);
  await removal.finally(() => blocked.delete(id));
}
