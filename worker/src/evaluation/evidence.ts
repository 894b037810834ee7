/**
 * What ran in the evaluation can change the tools that it is judged by: pytest, python, bash, the script that bash is still
 * reading, what git does when it resets the tests. Which of them changed while it ran is looked up afterwards, by plain exec;
 * `trust` makes of it what it may.
 */
import { RolloutFailure } from '@swefarm/shared';
import type { Container, ExecResult } from '../sandbox/runtime.ts';

const LIMIT_BYTES = 64 * 1024;
const TIMEOUT_MS = 10_000;
/** A changed inode time cannot be set back by who changed the file, a modification time can. */
const SCRIPT = `
since=$1 ran=$2 script=$3
set -- /opt/miniconda3/bin /opt/miniconda3/envs/testbed /usr/bin /usr/sbin /usr/local/bin /usr/lib/python3* \
  /etc/profile /etc/bash.bashrc /etc/profile.d /etc/ld.so.preload /root/.bashrc /root/.bash_profile /root/.profile
for path; do [ -e "$path" ] && set -- "$@" "$path"; shift; done
find -P "$@" -xdev '(' -name __pycache__ -o -name '*.dist-info' -o -name '*.egg-info' ')' -prune -o \
  '(' -type f -o -type l ')' -newerct "$since seconds ago" -print || exit
find -P "$@" -xdev -name '*.pth' '(' -type f -o -type l ')' -newerct "$since seconds ago" -print | while IFS= read -r file; do
  [ "$(head -c 4097 "$file" | wc -c)" -le 4096 ] || continue
  printf '%s:\\n' "$file"
  grep -aH '' "$file"
done
[ -e "$script" ] || echo "$script"
find -P "$script" -newerct "$ran seconds ago" -print
find -P /testbed/.git/hooks /testbed/.git/info/attributes -newerct "$since seconds ago" -print
grep -isE '^[[:space:]]*(\\[(filter|include)|hookspath|attributesfile|fsmonitor)' -H \
  $(find -P /testbed/.git/config /etc/gitconfig /root/.gitconfig -newerct "$since seconds ago" -print) /dev/null
exit 0`;

/** Seconds since the files of the evaluation were handed over, and since its script began; the script's path. */
export type Since = { handed: number; began: number; script: string };

/**
 * Files of the environment that changed in the last so many seconds, at most some hundred, and lines (`path:line`) of those that
 * Python reads at start and by which git was told to alter files; null where this cannot be told (no GNU find, the container is gone). By the container's own clock: the
 * worker's may differ, or have been set meanwhile.
 */
export async function changedFiles(
  container: Container,
  since: Since,
  signal: AbortSignal,
): Promise<string[] | null> {
  const result = await list(container, since, signal);
  if (result?.exitCode !== 0) return null;
  return result.output
    .toString('utf8')
    .split('\n')
    .filter((line) => line.startsWith('/'));
}

async function list(container: Container, since: Since, signal: AbortSignal): Promise<ExecResult | null> {
  const seconds = [since.handed, since.began].map((one) => one.toFixed(3));
  try {
    return await container.exec(['/bin/sh', '-c', SCRIPT, 'swefarm', ...seconds, since.script], {
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
