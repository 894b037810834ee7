/**
 * Decides whether the code in a sandbox, or the node, broke a sandbox that worked after its preparation. The code is the cause
 * of every end that it can bring about, unless there is evidence of infrastructure: an engine that is unreachable or was
 * restarted, a container that was killed or removed from outside, a node without memory or disk, a control sandbox of the same
 * image that fails, and a worker that was told to stop. Code in a sandbox can make anything there fail or lie, so all evidence
 * comes from outside: from the runtime, from a fresh container of the same image, and from the disk.
 */
import { type FailureClass, RolloutFailure, sleepAtMost } from '@swefarm/shared';
import { diskIsFull } from './disk.ts';
import { requireOwnKills } from './memorygroup.ts';
import type { Container, ContainerState, Runtime } from './runtime.ts';

/** Failures that code in a sandbox can cause. */
const BY_CODE: ReadonlySet<FailureClass> = new Set([
  'sandbox_lost',
  'evaluation_lost',
  'no_bash',
  'no_worktree',
  'patch_take',
]);
const CONTROL_MS = 60_000;
const GOING_MS = 1_000;
/** A sandbox without a disk limit counts as having filled the disk when it alone wrote this much. */
const MOST_BYTES = 8 * 1024 ** 3;
const MOST_SHARE = 0.25;

export type Suspect = {
  container: Container;
  runtime: Pick<Runtime, 'diskFree'>;
  /** Starts a container of the same image without untrusted code. */
  fresh(): Promise<Container>;
  /** The disk limit; null: none. */
  diskBytes: number | null;
  signal: AbortSignal;
};

/** Whether code in a prepared sandbox caused the failure. */
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

/** Failures of the calls of a container that somebody ends meanwhile. */
const OF_ENDED: ReadonlySet<FailureClass> = new Set([...BY_CODE, 'engine_unreachable']);

/** Returns `lost` where somebody outside ended the container, whose calls then fail in many ways; else the error itself. */
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

/** A `node_memory` failure with a cause is an engine's error, which a container without memory causes too. */
function canBeCausedByCode(error: unknown): boolean {
  if (!(error instanceof RolloutFailure)) return false;
  const { failureClass, cause } = error;
  return (
    BY_CODE.has(failureClass) ||
    failureClass === 'node_disk' ||
    (failureClass === 'node_memory' && cause !== undefined)
  );
}

/** The container runs, or its process 1 ended by itself. */
const isLeftByOthers = (state: ContainerState | null): boolean => state === 'running' || state === 'exited';

/** Whether the kernel killed a process because the node, and not the sandbox, lacked memory. */
const lackedMemory = (container: Container): Promise<boolean> =>
  requireOwnKills(container).then(
    () => false,
    () => true,
  );

/**
 * Whether this sandbox filled the full disk, with its files and with deleted files that its processes have open. Ends the
 * container.
 */
export async function hasFilledDisk({ container, runtime, diskBytes, signal }: Suspect): Promise<boolean> {
  const free = async (): Promise<number> => (await runtime.diskFree?.().catch(() => null)) ?? 0;
  const before = await free();
  await container.end?.(signal).catch(() => undefined);
  const released = Math.max(0, (await free()) - before);
  return occupiesDisk({ container, diskBytes }, released);
}

/** As {@link hasFilledDisk}, by the size of the files, without ending the sandbox. @param more bytes of deleted files */
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
