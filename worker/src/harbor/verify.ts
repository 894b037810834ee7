/**
 * The shared verifier of a Harbor task, which works in the container of the agent. Nothing that the agent left may act for it: its processes
 * are killed, and `/tests` and the rewards are removed before the tests of the task are copied.
 */
import { exportsOf } from '@swefarm/grading';
import type { Container, ExecOptions } from '@swefarm/sandbox';
import type { HarborTask } from '@swefarm/shared';
import { taskFiles, userOf } from './settings.ts';

const TIMEOUT_MS = 30_000;
/** Exit code of a process that was killed by SIGKILL. */
const KILLED = 137;
const OUTPUT_BYTES = 64 * 1024;
const REWARDS = ['/logs/verifier/reward.json', '/logs/verifier/reward.txt'];
/**
 * Removes links too, which could lead elsewhere. A folder of logs that is a link is replaced. The last line fails if a replaced `rm` has
 * removed nothing.
 */
const CLEAR = `export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ -L /logs ] && rm -f /logs
rm -rf "/$1" /logs/verifier && mkdir -p /logs/verifier "/$1" && chmod 777 /logs/verifier && chmod 755 "/$1"
for left in "/$1"/* "/$1"/.[!.]* /logs/verifier/* /logs/verifier/.[!.]*; do [ -e "$left" ] && exit 1; done; [ -d "/$1" ]`;

type Folder = 'tests' | 'solution';

/** Runs `solve` in the place of `solution/solve.sh`, as the agent of the task. Its exit code does not count, and its time limit only ends it, as in Harbor. */
export async function runSolution(
  container: Container,
  task: HarborTask,
  solve: string,
  { timeoutMs, signal }: Pick<ExecOptions, 'timeoutMs' | 'signal'>,
): Promise<void> {
  await copyIn(container, task, 'solution', signal);
  await container.putFiles(
    [{ path: '/solution/solve.sh', content: Buffer.from(solve), mode: 0o755 }],
    signal,
  );
  const script = `${exportsOf({ DEBIAN_FRONTEND: 'noninteractive', ...task.solution_env })}/solution/solve.sh\n`;
  await container.exec(['/bin/bash', '-c', script], {
    user: userOf(task.agent, container.spec.image),
    cwd: container.workdir,
    timeoutMs,
    maxOutputBytes: OUTPUT_BYTES,
    signal,
  });
}

/**
 * Prepares the container for the verifier, and returns how the test script runs. Returns why not if the agent's container cannot be
 * prepared, such as without a working `rm`. Throws errors of the runtime.
 */
export async function prepareVerifier(
  container: Container,
  task: HarborTask,
  signal: AbortSignal,
): Promise<{ user: string } | { blocked: string }> {
  await container.killProcesses();
  if (!(await copyIn(container, task, 'tests', signal)))
    return { blocked: 'what the agent left in /tests and /logs/verifier cannot be removed' };
  for (const path of REWARDS)
    if ((await container.getFile(path, OUTPUT_BYTES, signal)) !== null)
      return { blocked: `${path} is still there after its removal` };
  return { user: userOf(task.verifier, container.spec.image) };
}

/** Empties a folder and the rewards, and copies the files of the task there. Returns false if the folder cannot be emptied. */
async function copyIn(
  container: Container,
  task: HarborTask,
  folder: Folder,
  signal: AbortSignal,
): Promise<boolean> {
  const clear = () =>
    container.exec(['/bin/bash', '-c', CLEAR, 'clear', folder], {
      user: 'root',
      env: {},
      cwd: '/',
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: OUTPUT_BYTES,
      signal,
    });
  let { exitCode } = await clear();
  // A signal of the kill before can arrive late and end the first try.
  if (exitCode === KILLED) ({ exitCode } = await clear());
  if (exitCode !== 0) return false;
  const script = folder === 'tests' ? 'test.sh' : 'solve.sh';
  const files = [...taskFiles(task, `${folder}/`)].map(([path, { content, executable }]) => ({
    path: `/${folder}/${path}`,
    content,
    mode: executable || path === script ? 0o755 : 0o644,
  }));
  await container.putFiles(files, signal);
  return true;
}
