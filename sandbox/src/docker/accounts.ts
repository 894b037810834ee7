/**
 * Checks the files that an engine reads in a container before it starts a command there or makes an archive. If code inside replaces
 * them with a pipe, the engine waits for ever with the container locked, and can neither kill nor remove it.
 */
import { posix } from 'node:path';
import { RolloutFailure, sleep } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import { pathStat } from './changes.ts';

const READ = ['/etc/passwd', '/etc/group'];
/** No list of users is larger; reading it takes as much memory. */
const MOST_BYTES = 16 * 1024 ** 2;
/** Checks after a call that was late. */
const LOOKS = 5;
const LOOK_MS = 10_000;
const PAUSE_MS = 50;
/** Mounted inside only: an engine that looks from outside does not see these files, but the process that it starts inside does. */
const INSIDE_ONLY = /^\/(?:dev|proc|sys)(?:\/|$)/;

/**
 * Throws RolloutFailure `sandbox_lost` when an engine would block on such a file, or read it without end; else the engine's own error.
 * A file that an engine can open but not use is left to the engine, which reports it.
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
 * The failure behind a late answer: `sandbox_lost` when an engine would block on a file in the container, else `engine_unreachable`: a
 * loaded disk stops an engine for minutes too. Checks several times: code inside may write the file and remove it by turns.
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
    // Engines report where all links end.
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
