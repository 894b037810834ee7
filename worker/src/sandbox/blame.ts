/**
 * Whose doing it is that a sandbox which worked when it was prepared works no more. What is inside can be made to fail in any way and
 * to say anything, so nobody there is asked: the runtime says whether the container is still there, a fresh one of the same image
 * whether the node still does its work, and the disk who filled it.
 */
import { type FailureClass, RolloutFailure, sleepAtMost } from '@swefarm/shared';
import { diskIsFull } from './disk.ts';
import type { Container, Runtime } from './runtime.ts';

/** What code in a sandbox can bring about. */
const BY_CODE: ReadonlySet<FailureClass> = new Set([
  'sandbox_lost',
  'no_bash',
  'no_worktree',
  'patch_take',
  'node_disk',
]);
const CONTROL_MS = 60_000;
const GOING_MS = 1_000;
/** Without a limit of its own, a sandbox has filled a disk when it wrote so much of it alone. */
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

/** True when what failed in a sandbox that had been prepared is the doing of what ran in it. */
export async function isOwnDoing(error: unknown, suspect: Suspect): Promise<boolean> {
  const { container, runtime, signal } = suspect;
  if (signal.aborted || !(error instanceof RolloutFailure) || !BY_CODE.has(error.failureClass)) return false;
  if (await diskIsFull(runtime)) return filledDisk(suspect);
  const state = await container.state().catch(() => null);
  if (state !== 'running') return state === 'own_limit';
  if (!(await nodeWorks(suspect))) return false;
  // Whoever ends this node's processes one by one may have come to a stream of the container's before the container.
  await sleepAtMost(GOING_MS, signal);
  return !signal.aborted && (await container.state().catch(() => null)) === 'running';
}

/** Whether a disk that is full was filled by this sandbox: by what it wrote, and what its processes still held. Ends the container. */
export async function filledDisk({ container, runtime, diskBytes, signal }: Suspect): Promise<boolean> {
  const free = async (): Promise<number> => (await runtime.diskFree?.().catch(() => null)) ?? 0;
  const before = await free();
  await container.end?.(signal).catch(() => undefined);
  const held = Math.max(0, (await free()) - before);
  return holdsDisk({ container, diskBytes }, held);
}

/** The same of a sandbox that goes on, by what it has written and not removed. @param more bytes that are held beside that */
export async function holdsDisk(
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
