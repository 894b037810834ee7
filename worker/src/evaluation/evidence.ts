/**
 * What ran in the evaluation can change the tools that it is judged by: pytest, python, bash. Which files of the environment
 * changed while it ran is looked up afterwards, by plain exec; `trust` makes of it what it may.
 */
import { RolloutFailure } from '@swefarm/shared';
import type { Container, ExecResult } from '../sandbox/runtime.ts';

const LIMIT_BYTES = 64 * 1024;
const TIMEOUT_MS = 10_000;
/** A changed inode time cannot be set back by who changed the file, a modification time can. */
const SCRIPT = `
set -- "$1" /opt/miniconda3/bin /opt/miniconda3/envs/testbed /usr/bin /usr/sbin /usr/local/bin /usr/lib/python3* \
  /etc/profile /etc/bash.bashrc /etc/profile.d /root/.bashrc /root/.bash_profile /root/.profile
since=$1; shift
for path; do [ -e "$path" ] && set -- "$@" "$path"; shift; done
exec find -P "$@" -xdev '(' -name __pycache__ -o -name '*.dist-info' -o -name '*.egg-info' ')' -prune -o \
  '(' -type f -o -type l ')' -newerct "$since seconds ago" -print`;

/**
 * Files of the environment that changed in the last so many seconds, at most some hundred; null where this cannot be told
 * (no GNU find, the container is gone). By the container's own clock: the worker's may differ, or have been set meanwhile.
 */
export async function changedFiles(
  container: Container,
  seconds: number,
  signal: AbortSignal,
): Promise<string[] | null> {
  const result = await list(container, seconds, signal);
  if (result?.exitCode !== 0) return null;
  return result.output
    .toString('utf8')
    .split('\n')
    .filter((line) => line.startsWith('/'));
}

async function list(container: Container, seconds: number, signal: AbortSignal): Promise<ExecResult | null> {
  try {
    return await container.exec(['/bin/sh', '-c', SCRIPT, 'swefarm', seconds.toFixed(3)], {
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
      cwd: '/',
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: LIMIT_BYTES,
      signal,
    });
  } catch (error) {
    // The tests have ended and their log is here: a container that dies now takes no verdict with it.
    if (error instanceof RolloutFailure && !signal.aborted) return null;
    throw error;
  }
}
