/**
 * Decides whether the code in a sandbox or the node broke a sandbox that worked when it was prepared. Code in a sandbox can make
 * anything there fail or lie, so all evidence comes from outside: the runtime says whether the container still exists, a fresh container
 * of the same image shows whether the node still works, and the disk shows which of them filled it.
 */
import { type FailureClass, RolloutFailure, sleepAtMost } from '@swefarm/shared';
import { diskIsFull } from './disk.ts';
import type { Container, Runtime } from './runtime.ts';

/** Failures that code in a sandbox can cause. */
const BY_CODE: ReadonlySet<FailureClass> = new Set([
  'sandbox_lost',
  'no_bash',
  'no_worktree',
  'patch_take',
  'node_disk',
]);
const CONTROL_MS = 60_000;
const GOING_MS = 1_000;
/** A sandbox without a disk limit has filled the disk when it alone wrote this much. */
const MOST_BYTES = 8 * 1024 ** 3;
const MOST_SHARE = 0.25;

export type Suspect = {
  container: Container;
  runtime: Pick<Runtime, 'diskFree'>;
  /** Starts a container of the same image, in which nothing has run yet. */
  fresh(): Promise<Container>;
  /** What it was allowed to write; null: no limit. */
  diskBytes: number | null;
  signal: AbortSignal;
};

/** True when code in a prepared sandbox caused the failure. */
export async function isCausedByCode(error: unknown, suspect: Suspect): Promise<boolean> {
  const { container, runtime, signal } = suspect;
  if (signal.aborted || !(error instanceof RolloutFailure) || !BY_CODE.has(error.failureClass)) return false;
  if (await diskIsFull(runtime)) return hasFilledDisk(suspect);
  const state = await container.state().catch(() => null);
  if (state !== 'running') return state === 'own_limit';
  if (!(await nodeWorks(suspect))) return false;
  // When something kills this node's processes one by one, a stream of the container can break before the container itself ends.
  await sleepAtMost(GOING_MS, signal);
  return !signal.aborted && (await container.state().catch(() => null)) === 'running';
}

/** Whether this sandbox filled the full disk, with its files and with deleted files that its processes held open. Ends the container. */
export async function hasFilledDisk({ container, runtime, diskBytes, signal }: Suspect): Promise<boolean> {
  const free = async (): Promise<number> => (await runtime.diskFree?.().catch(() => null)) ?? 0;
  const before = await free();
  await container.end?.(signal).catch(() => undefined);
  const held = Math.max(0, (await free()) - before);
  return occupiesDisk({ container, diskBytes }, held);
}

/** The same without ending the sandbox, from the size of its files. @param more bytes that its processes held beside these */
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
