/** Prepares a new container for a Harbor task: creates log folders, copies `environment/` if the image is prebuilt, checks the health. */
import type { Container } from '@swefarm/sandbox';
import { type HarborTask, RolloutFailure, sleep } from '@swefarm/shared';
import { taskFiles, userOf } from './settings.ts';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 4 * 1024;

const NO_TAR = 'the image has no tar, with which the farm copies artifacts to the separate verifier';
const PREPARE = `cd -- "$1" || exit 41
[ -z "$2" ] || command -v "$2" >/dev/null || exit 42
mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts`;

type Start = {
  /** Whether the worker copies `environment/` into the working folder. */
  copies: boolean;
  /** Whether the worker copies artifacts out of the container, for which the image needs tar. */
  yields: boolean;
  healthcheck?: HarborTask['healthcheck'];
};

/** Prepares the container of the agent. Throws RolloutFailure `setup_failed` or `no_bash`, and errors of the runtime. */
export const startTask = (container: Container, task: HarborTask, signal: AbortSignal): Promise<void> =>
  startContainer(
    container,
    task,
    {
      copies: !task.build,
      yields: task.verifier.separate !== undefined,
      healthcheck: task.healthcheck,
    },
    signal,
  );

/** Prepares the container of a separate verifier, without a health check, as in Harbor. Throws the errors of {@link startTask}. */
export async function startVerifier(
  container: Container,
  task: HarborTask,
  signal: AbortSignal,
): Promise<void> {
  const { separate } = task.verifier;
  const copies = separate !== undefined && !separate.build && !separate.has_tests;
  await startContainer(container, task, { copies, yields: false }, signal);
}

async function startContainer(
  container: Container,
  task: HarborTask,
  { copies, yields, healthcheck }: Start,
  signal: AbortSignal,
): Promise<void> {
  const { workdir } = container;
  const limits = { timeoutMs: TIMEOUT_MS, maxOutputBytes: OUTPUT_BYTES, signal };
  const line = ['/bin/bash', '-c', PREPARE, 'prepare', workdir, yields ? 'tar' : ''];
  const { exitCode, output } = await container.exec(line, { user: 'root', cwd: '/', ...limits });
  if (exitCode === 126 || exitCode === 127)
    throw new RolloutFailure('no_bash', 'the image has no /bin/bash, so commands of the task cannot run');
  if (exitCode !== 0) {
    const known = { 41: `the image has no folder ${workdir}`, 42: NO_TAR }[exitCode ?? 0];
    const why = known ?? output.toString('utf8').trim();
    throw new RolloutFailure(
      'setup_failed',
      `cannot prepare the container of the task: ${why}`.slice(0, 400),
    );
  }
  if (copies) {
    const files = [...taskFiles(task, 'environment/')].map(([path, { content, executable }]) => ({
      path: `${workdir === '/' ? '' : workdir}/${path}`,
      content,
      mode: executable ? 0o755 : 0o644,
    }));
    if (files.length > 0) await container.putFiles(files, signal);
  }
  if (healthcheck) await requireHealth(container, healthcheck, signal);
}

/**
 * Repeats the health check until it succeeds. Failures in the start period do not count, as in Harbor. Throws RolloutFailure
 * `setup_failed`.
 */
async function requireHealth(
  container: Container,
  check: NonNullable<HarborTask['healthcheck']>,
  signal: AbortSignal,
): Promise<void> {
  const startedUntil = performance.now() + check.start_period_sec * 1000;
  for (let failures = 0; ; ) {
    const { exitCode, output } = await container.exec(['/bin/bash', '-c', check.command], {
      user: userOf({}, container.spec.image),
      cwd: container.workdir,
      timeoutMs: check.timeout_sec * 1000,
      maxOutputBytes: OUTPUT_BYTES,
      signal,
    });
    if (exitCode === 0) return;
    const starting = performance.now() < startedUntil;
    if (!starting) failures += 1;
    if (failures >= check.retries) {
      const printed = output.toString('utf8').trim().slice(-200);
      const why = `the health check failed ${failures} times (exit code ${exitCode}): ${printed}`;
      throw new RolloutFailure('setup_failed', why);
    }
    await sleep(1000 * (starting ? check.start_interval_sec : check.interval_sec), signal);
  }
}
