/**
 * Prepares a container for the verifier of a Harbor task. Removes all files in `/tests` and `/logs/verifier` before the tests begin. A
 * shared verifier uses programs of the container that the agent may have replaced; the report's `trust` covers replaced programs.
 */
import type { Container, ExecOptions } from '@swefarm/sandbox';
import { type HarborTask, SwefarmError, shellExports } from '@swefarm/shared';
import { taskFiles, userOf } from './settings.ts';

const TIMEOUT_MS = 30_000;
/** Exit code of a process that was killed by SIGKILL. */
const KILLED = 137;
const OUTPUT_BYTES = 64 * 1024;
const REWARDS = ['/logs/verifier/reward.json', '/logs/verifier/reward.txt'];
/**
 * Empties both folders from inside the container, for runtimes without `replaceFolders`. Replaces links, which could point to files of the
 * agent. Fails if files remain, because the agent may have replaced `rm`.
 */
const CLEAR = `export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ -L /logs ] && rm -f /logs
rm -rf /logs/verifier && mkdir -p /logs/verifier && chmod 777 /logs/verifier
for left in /logs/verifier/* /logs/verifier/.[!.]*; do [ -e "$left" ] && exit 1; done
[ -n "$1" ] || exit 0
rm -rf "/$1" && mkdir -p "/$1" && chmod 755 "/$1"
for left in "/$1"/* "/$1"/.[!.]*; do [ -e "$left" ] && exit 1; done; [ -d "/$1" ]`;

type Folder = 'tests' | 'solution';

/** Runs `solve` instead of `solution/solve.sh`, as the agent's user. Ignores the exit code and a timeout, as Harbor does. */
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
  const script = `${shellExports({ DEBIAN_FRONTEND: 'noninteractive', ...task.solution_env })}/solution/solve.sh\n`;
  await container.exec(['/bin/bash', '-c', script], {
    user: userOf(task.agent, container.spec.image),
    cwd: container.workdir,
    timeoutMs,
    maxOutputBytes: OUTPUT_BYTES,
    signal,
  });
}

/**
 * Prepares the container for the verifier. The caller has killed the agent's processes. Returns the user of the test script. Returns
 * `blocked` with the reason if the test script cannot run, for example without a working bash. Throws errors of the runtime.
 */
export async function prepareVerifier(
  container: Container,
  task: HarborTask,
  signal: AbortSignal,
): Promise<{ user: string } | { blocked: string }> {
  const { has_tests: hasTests = false } = task.verifier.separate ?? {};
  if (!(await copyIn(container, task, hasTests ? null : 'tests', signal)))
    return { blocked: "cannot remove the agent's files in /tests and /logs/verifier" };
  if (hasTests) await runs(container, 'root', 'chmod +x /tests/test.sh', [], signal);
  const user = userOf(task.verifier, container.spec.image);
  if (!(await runs(container, user, ':', [], signal))) return { blocked: '/bin/bash does not run' };
  return { user };
}

/**
 * Empties `folder` and `/logs/verifier`, and copies files of the task into `folder`. Returns false if one of them cannot be emptied.
 * @param folder null: only `/logs/verifier` is emptied, because the image has the tests
 */
async function copyIn(
  container: Container,
  task: HarborTask,
  folder: Folder | null,
  signal: AbortSignal,
): Promise<boolean> {
  const script = folder === 'tests' ? 'test.sh' : 'solve.sh';
  const own = folder === null ? [] : [...taskFiles(task, `${folder}/`)];
  const files = own.map(([path, { content, executable }]) => ({
    path: `/${folder}/${path}`,
    content,
    mode: executable || path === script ? 0o755 : 0o644,
  }));
  if (container.replaceFolders) {
    const folders = [
      ...(folder === null ? [] : [{ path: `/${folder}`, mode: 0o755 }]),
      { path: '/logs/verifier', mode: 0o777 },
    ];
    await container.replaceFolders(folders, files, signal);
    return true;
  }
  if (!(await runs(container, 'root', CLEAR, ['clear', folder ?? ''], signal))) return false;
  for (const path of REWARDS) if (await isThere(container, path, signal)) return false;
  await container.putFiles(files, signal);
  return true;
}

async function isThere(container: Container, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await container.getFile(path, OUTPUT_BYTES, signal)) !== null;
  } catch (error) {
    if (error instanceof SwefarmError && error.code === 'file_too_large') return true;
    throw error;
  }
}

/** Returns whether a script exits with 0. Retries after SIGKILL: a late signal of `killProcesses` can end the first attempt. */
async function runs(
  container: Container,
  user: string,
  script: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  const attempt = () =>
    container.exec(['/bin/bash', '-c', script, ...args], {
      ...{ user, env: {}, cwd: '/' },
      ...{ timeoutMs: TIMEOUT_MS, maxOutputBytes: OUTPUT_BYTES, signal },
    });
  const { exitCode } = await attempt();
  return (exitCode === KILLED ? (await attempt()).exitCode : exitCode) === 0;
}
