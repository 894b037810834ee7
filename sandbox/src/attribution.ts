/**
 * Decides whether code or the infrastructure broke a sandbox. The code counts as the cause, unless evidence from outside shows another
 * one: the engine, the container's state, memory or disk of the node, or a fresh container of the same image that fails. Evidence from
 * inside is not used, because code in a sandbox can falsify everything there.
 */
import { FAILURES, type FailureClass, RolloutFailure, sleepAtMost } from '@swefarm/shared';
import { diskIsFull } from './disk.ts';
import { requireOwnKills } from './memorygroup.ts';
import type { Container, ContainerState, Runtime } from './runtime.ts';

/** Failure classes that code in a sandbox can cause. */
const BY_CODE: ReadonlySet<FailureClass> = new Set([
  'sandbox_lost',
  'evaluation_lost',
  'no_bash',
  'no_worktree',
  'patch_take',
]);
const CONTROL_MS = 60_000;
const GOING_MS = 1_000;
/** Bytes from which a sandbox without a disk limit counts as the cause of a full disk. */
const MOST_BYTES = 8 * 1024 ** 3;
const MOST_SHARE = 0.25;

export type Suspect = {
  container: Container;
  runtime: Pick<Runtime, 'diskFree'>;
  /** Starts a container of the same image without untrusted code. */
  fresh(): Promise<Container>;
  /** Disk limit of the sandbox; null: no limit. */
  diskBytes: number | null;
  signal: AbortSignal;
};

/** Returns whether code in a prepared sandbox caused the failure. */
export async function isCausedByCode(error: unknown, suspect: Suspect): Promise<boolean> {
  const { container, runtime, signal } = suspect;
  if (signal.aborted || !canBeCausedByCode(error)) return false;
  if (await diskIsFull(runtime)) return hasFilledDisk(suspect);
  const state = await container.state().catch(() => null);
  if (state === 'own_limit') return true;
  if (!isLeftByOthers(state) || (await lackedMemory(container)) || !(await nodeWorks(suspect))) return false;
  // When the node's processes are killed one by one, a container's stream can break before the container ends.
  await sleepAtMost(GOING_MS, signal);
  return !signal.aborted && isLeftByOthers(await container.state().catch(() => null));
}

/** Failure classes of calls to a container that somebody ends during the call. */
const OF_ENDED: ReadonlySet<FailureClass> = new Set([...BY_CODE, 'engine_unreachable']);

/** Returns a failure of class `lost` if somebody outside ended the container, because its calls then fail in many ways; else `error`. */
export async function lossOr(
  error: unknown,
  container: Container,
  lost: 'sandbox_lost' | 'evaluation_lost',
): Promise<unknown> {
  if (!(error instanceof RolloutFailure) || !OF_ENDED.has(error.failureClass)) return error;
  const state = await container.state().catch(() => null);
  if (state !== 'killed' && state !== 'gone') return error;
  return new RolloutFailure(lost, `somebody ended the container, which is ${state}`, { cause: error });
}

/**
 * A `node_memory` failure with a cause comes from an engine. A container that uses up its own memory can also cause that error. A failure
 * of the stage `image` in a container that runs comes from the text of an error, which may contain words of the code.
 */
function canBeCausedByCode(error: unknown): boolean {
  if (!(error instanceof RolloutFailure)) return false;
  const { failureClass, cause } = error;
  return (
    BY_CODE.has(failureClass) ||
    failureClass === 'node_disk' ||
    FAILURES[failureClass].stage === 'image' ||
    (failureClass === 'node_memory' && cause !== undefined)
  );
}

/** True if nobody outside ended the container: it runs, or its process 1 ended by itself. */
const isLeftByOthers = (state: ContainerState | null): boolean => state === 'running' || state === 'exited';

/** Returns whether the kernel killed a process because the node, and not the sandbox, lacked memory. */
const lackedMemory = (container: Container): Promise<boolean> =>
  requireOwnKills(container).then(
    () => false,
    () => true,
  );

/** Returns whether this sandbox filled the disk, with its files and with deleted files that its processes have open. Ends the container. */
export async function hasFilledDisk({ container, runtime, diskBytes, signal }: Suspect): Promise<boolean> {
  const free = async (): Promise<number> => (await runtime.diskFree?.().catch(() => null)) ?? 0;
  const before = await free();
  await container.end?.(signal).catch(() => undefined);
  const released = Math.max(0, (await free()) - before);
  return occupiesDisk({ container, diskBytes }, released);
}

/** Returns whether the sandbox's files fill the disk, without ending the sandbox. @param more bytes of deleted files to add */
export async function occupiesDisk(
  { container, diskBytes }: Pick<Suspect, 'container' | 'diskBytes'>,
  more = 0,
): Promise<boolean> {
  const use = await container.diskUse?.().catch(() => null);
  if (!use) return false;
  const bytes = use.bytes + more;
  return diskBytes === null ? bytes >= MOST_BYTES || use.share >= MOST_SHARE : bytes >= diskBytes;
}

async function nodeWorks({ fresh, signal }: Suspect): Promise<boolean> {
  try {
    await using control = await fresh();
    const options = { timeoutMs: CONTROL_MS, maxOutputBytes: 1024, signal };
    return (await control.exec(['bash', '-c', 'exit 0'], options)).exitCode === 0;
  } catch {
    return false;
  }
}
