/** The list of runtimes, and the choice of one for this node: the configured runtime, or the first usable one. */
import {
  apptainer,
  diskIsFull,
  docker,
  host,
  podman,
  type Runtime,
  type RuntimeCheck,
  type RuntimeEntry,
  rootfs,
} from '@swefarm/sandbox';
import {
  errorMessage,
  linearBackoff,
  RUNTIME_NAMES,
  type RuntimeName,
  retry,
  UnusableError,
  type WorkerConfig,
} from '@swefarm/shared';
import type { Logger } from 'pino';

/** Error code: no runtime is usable now, but one may be usable soon. */
const RUNTIME_AWAY = 'runtime_away';

/** Codes of errors that may pass, of the farm and of the operating system. */
const PASSING: ReadonlySet<unknown> = new Set([
  RUNTIME_AWAY,
  'engine_unreachable',
  'node_disk',
  'ENOSPC',
  'EDQUOT',
]);

const ENTRIES: Record<RuntimeName, RuntimeEntry> = { docker, podman, apptainer, rootfs, host };

/** Opens a runtime by name, even if the runtime is not usable. */
export const openRuntime = async (name: RuntimeName, config: WorkerConfig, log: Logger): Promise<Runtime> =>
  ENTRIES[name].open(config, log);

export type ChosenRuntime = { name: RuntimeName; runtime: Runtime; check: RuntimeCheck };

/** Throws UnusableError with every problem and its remedy. The code is `runtime_away` if the problem may pass, else `runtime`. */
export async function chooseRuntime(
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ChosenRuntime> {
  const automatic = RUNTIME_NAMES.filter((name) => ENTRIES[name].isAutomatic(config));
  return await firstUsable(config.runtime === 'auto' ? automatic : [config.runtime], config, log, signal);
}

/** Chooses a runtime with an engine, even if another runtime runs the sandboxes. Throws the errors of {@link chooseRuntime}. */
export async function chooseEngine(
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<{ runtime: Runtime; socketPath: string }> {
  const engines = RUNTIME_NAMES.filter((name) => ENTRIES[name].engineSocket);
  const configured = engines.filter((name) => name === config.runtime);
  const names = configured.length > 0 ? configured : engines;
  const { runtime, name } = await firstUsable(names, config, log, signal);
  return { runtime, socketPath: ENTRIES[name].engineSocket?.(config) ?? '' };
}

async function firstUsable(
  names: readonly RuntimeName[],
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ChosenRuntime> {
  const problems: string[] = [];
  let isAway = false;
  for (const name of names) {
    const runtime = await openRuntime(name, config, log);
    const check = await runtime.check(signal).catch(async (error: unknown) => {
      await runtime[Symbol.asyncDispose]();
      throw error;
    });
    if (check.usable) return { name, runtime, check };
    problems.push(...check.problems.map((problem) => `${name}: ${problem}`));
    // With several candidates, an engine without a socket is not installed, so the worker does not wait for it. A full disk causes many
    // different errors.
    const isAwaited = names.length === 1 ? check.away !== undefined : check.away === 'no_answer';
    isAway ||= isAwaited || (await diskIsFull(runtime));
    await runtime[Symbol.asyncDispose]();
  }
  throw new UnusableError(isAway ? RUNTIME_AWAY : 'runtime', `no usable runtime: ${problems.join('; ')}`);
}

/**
 * Waits at the start of a worker for the container engine and for free disk. Retries errors that may pass, for at most
 * `engine_patience_seconds`, and logs the wait once. Throws the last error.
 */
export async function waitForRuntime<T>(
  call: () => Promise<T>,
  { engine_patience_seconds: patience_seconds }: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<T> {
  let waited = false;
  const answer = await retry(call, {
    pauseMs: linearBackoff(250, 2_000),
    withinMs: patience_seconds * 1000,
    signal,
    isPassing: mayPass,
    onRetry(error) {
      if (waited) return;
      waited = true;
      const fields = { patience_seconds, err: errorMessage(error) };
      log.warn(fields, 'runtime not usable yet: waiting');
    },
  });
  if (waited) log.info('runtime is usable');
  return answer;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && PASSING.has(error.code)) || mayPass(error.cause);
}
