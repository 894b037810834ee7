/** Takes the work out of the agent's container of a Harbor task: runs the hooks of the task, then copies the artifacts. */
import { type Container, copyIn, copyOut } from '@swefarm/sandbox';
import {
  type CollectedArtifact,
  createSemaphore,
  errorMessage,
  type HarborArtifact,
  type HarborTask,
  RolloutFailure,
  SwefarmError,
} from '@swefarm/shared';
import { userOf } from './settings.ts';

/** Maximum of all artifacts of a rollout together. */
const MOST = { bytes: 32 * 1024 ** 2, entries: 10_000 };
/** Maximum of the folder `/logs/artifacts` if the task does not declare it and the verifier does not need it, in bytes. */
const UNDECLARED_BYTES = 4 * 1024 ** 2;
/** Limits the memory of a worker: the copy of one rollout needs about four times the size of its artifacts. */
const copies = createSemaphore(2);
/** Time limit of the copies of all artifacts together. */
const COPY_MS = 60_000;
const OUTPUT_BYTES = 4 * 1024;

type Artifacts = Pick<HarborTask, 'artifacts'> & { verifier: Pick<HarborTask['verifier'], 'separate'> };
type Collecting = { signal: AbortSignal; warn: (message: string) => void };

/** Runs the hooks. A failed hook is no error, as in Harbor. Throws errors of the runtime. @param warn gets the reason of each failure */
export async function runHooks(
  container: Container,
  task: Pick<HarborTask, 'collect'>,
  { signal, warn }: Collecting,
): Promise<void> {
  for (const { command, timeout, user } of task.collect) {
    const { exitCode, output } = await container.exec(['/bin/bash', '-c', command], {
      user: userOf({ user }, container.spec.image),
      cwd: container.workdir,
      ...{ timeoutMs: timeout * 1000, maxOutputBytes: OUTPUT_BYTES, signal },
    });
    if (exitCode === 0) continue;
    const printed = output.toString('utf8').trim().slice(-200);
    const how = exitCode === null ? `exceeded ${timeout} s` : `ended with ${exitCode}`;
    warn(`a command of verifier.collect ${how}: ${printed}`);
  }
}

/** Copies the artifacts. A failed artifact is no error, as in Harbor. Throws errors of the runtime. @param warn as in {@link runHooks} */
export async function copyArtifacts(
  container: Container,
  task: Artifacts,
  how: Collecting,
): Promise<CollectedArtifact[]> {
  const leave = await copies.acquire(how.signal);
  try {
    return await copyAll(container, task, how);
  } finally {
    leave();
  }
}

async function copyAll(
  container: Container,
  { artifacts, verifier }: Artifacts,
  { signal, warn }: Collecting,
): Promise<CollectedArtifact[]> {
  const left = { ...MOST };
  const until = performance.now() + COPY_MS;
  const collected: CollectedArtifact[] = [];
  for (const artifact of artifacts) {
    const isExtra = artifact.declared === false && !verifier.separate;
    const bytes = isExtra ? Math.min(left.bytes, UNDECLARED_BYTES) : left.bytes;
    const limits = { ...left, bytes, timeoutMs: until - performance.now() };
    const { isTooLarge = false, ...one } = await collectOne(container, artifact, collected, limits, signal);
    if (one.why !== undefined) warn(`artifact ${artifact.source}: ${one.why}`);
    collected.push(one);
    for (const { content } of one.files) left.bytes -= content?.length ?? 0;
    left.entries -= one.files.length;
    // Each artifact that is too large costs as much memory and time as all artifacts together.
    if (isTooLarge && artifact.declared !== false) left.entries = 0;
  }
  return collected;
}

/**
 * Takes the work for a separate verifier: runs the hooks beside the processes that the agent left, kills all processes and copies the
 * artifacts. Throws errors of the runtime.
 */
export async function collectWork(
  container: Container,
  task: HarborTask,
  how: Collecting,
): Promise<CollectedArtifact[]> {
  await runHooks(container, task, how);
  await container.killProcesses();
  return await copyArtifacts(container, task, how);
}

/** Copies one artifact. A problem with the artifact becomes its `why`, because the agent may have caused the problem. */
async function collectOne(
  container: Container,
  { source, destination, exclude }: HarborArtifact,
  earlier: readonly CollectedArtifact[],
  left: typeof MOST & { timeoutMs: number },
  signal: AbortSignal,
): Promise<CollectedArtifact & { isTooLarge?: boolean }> {
  // Harbor also guesses from the name whether an artifact that cannot be copied is a file.
  const type = /[^/]\.[^/.]+$/.test(source) ? 'file' : 'directory';
  const none = { source, destination, exclude, type, files: [] } as const;
  if (earlier.some((one) => overlaps(one.destination, destination)))
    return { ...none, exclude, files: [], status: 'skipped' };
  const failed = (why: string): CollectedArtifact => ({ ...none, exclude, files: [], status: 'failed', why });
  if (left.timeoutMs <= 0) return failed('no time is left');
  if (left.entries <= 0) return failed('an earlier artifact has reached the limit of all artifacts');
  try {
    const tree = await copyOut(container, { path: source, exclude }, left, signal);
    if (tree === null) return failed('does not exist');
    const { folder, entries, refused } = tree;
    const omitted = refused.length > 0 ? { why: `left out: ${refused.join(', ')}` } : {};
    if (!folder && entries.length === 0) return { ...failed('is no regular file'), ...omitted };
    const files = entries.map(({ content, ...entry }) => ({
      ...entry,
      ...(content ? { content: new Int8Array(content.buffer, content.byteOffset, content.byteLength) } : {}),
    }));
    return { ...none, exclude, type: folder ? 'directory' : 'file', status: 'ok', files, ...omitted };
  } catch (error) {
    if (error instanceof RolloutFailure || !(error instanceof SwefarmError)) throw error;
    return { ...failed(errorMessage(error)), isTooLarge: error.code === 'file_too_large' };
  }
}

const overlaps = (one: string, other: string): boolean =>
  one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);

/** Writes the artifacts to their original paths in the container of a separate verifier, in which no untrusted code has run. */
export async function restoreWork(
  container: Container,
  collected: readonly CollectedArtifact[],
  signal: AbortSignal,
): Promise<void> {
  for (const { source, type, status, files } of collected) {
    if (status !== 'ok') continue;
    const entries = files.map(({ content, ...entry }) => ({
      ...entry,
      ...(content ? { content: Buffer.from(content.buffer, content.byteOffset, content.byteLength) } : {}),
    }));
    await copyIn(container, source, { folder: type === 'directory', entries }, signal);
  }
}
