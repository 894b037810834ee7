/**
 * Checks the files that an engine reads in a container before the engine starts a command or makes an archive. If code inside replaces
 * a file with a pipe, the engine waits for ever, and the locked container can neither be killed nor removed.
 */
import { posix } from 'node:path';
import { RolloutFailure, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { pathStat } from './changes.ts';

const READ = ['/etc/passwd', '/etc/group'];
/** Maximum size of a file that an engine reads into memory. Real lists of users are smaller. */
const MOST_BYTES = 16 * 1024 ** 2;
/** Number of checks after a call to the engine timed out. */
const LOOKS = 5;
const LOOK_MS = 10_000;
const PAUSE_MS = 50;
/** Folders that are mounted only inside: an engine that checks a path from outside does not see the files that its process reads inside. */
const INSIDE_ONLY = /^\/(?:dev|proc|sys)(?:\/|$)/;

/**
 * Throws RolloutFailure `sandbox_lost` if an engine would block on one of the files or read it without end, and the engine's error if
 * the engine cannot be asked. Other unusable files pass, because the engine reports them.
 */
export async function requireReadable(container: Docker.Container, answerMs?: number): Promise<void> {
  await Promise.all(
    READ.map(async (path) => {
      const why = await problemAt(container, path, answerMs);
      if (why !== null)
        throw new RolloutFailure('sandbox_lost', `an engine cannot read ${path}: it is ${why}`);
    }),
  );
}

/**
 * Returns the failure behind a timeout: `sandbox_lost` if an engine would block on a file in the container, else `engine_unreachable`
 * (a loaded disk can stop an engine for minutes). Checks several times, because code inside may write and remove the file in turns.
 */
export async function lateFailure(
  container: Docker.Container,
  late: unknown,
  doing: string,
  answerMs = LOOK_MS,
): Promise<unknown> {
  for (let look = 1; look <= LOOKS; look++) {
    try {
      await requireReadable(container, answerMs);
    } catch (error) {
      return error instanceof RolloutFailure ? error : engineFailure(late, 'engine_unreachable', doing);
    }
    await sleep(PAUSE_MS);
  }
  return engineFailure(late, 'engine_unreachable', doing);
}

async function problemAt(
  container: Docker.Container,
  path: string,
  answerMs: number | undefined,
): Promise<string | null> {
  try {
    const found = await pathStat(container, path, answerMs);
    if (found.target === null) return problemIn(found);
    // Engines report the final target of a chain of links.
    const end = posix.resolve(posix.dirname(path), found.target);
    return INSIDE_ONLY.test(end) ? `a link to ${end}` : problemIn(await pathStat(container, end, answerMs));
  } catch (error) {
    if (statusCode(error) !== null) return null;
    throw error;
  }
}

function problemIn({ kind, bytes }: Awaited<ReturnType<typeof pathStat>>): string | null {
  if (kind === 'other') return 'no file';
  return kind === 'file' && bytes > MOST_BYTES ? `${bytes} bytes long` : null;
}
