/**
 * `swefarm-worker shell`: starts a sandbox of a stored rollout on this node, runs the commands of its recorded turns again, and then the
 * commands of a person. `swefarm shell` writes the file that this command reads.
 */
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { type CommandResult, type Container, createRemovals, type Shell } from '@swefarm/sandbox';
import {
  createLog,
  Instance,
  parseTurns,
  RunRecord,
  UnusableError,
  type WorkerConfig,
} from '@swefarm/shared';
import { z } from 'zod';
import { runMiniAgent } from './agent/loop.ts';
import { openReplay, ReplayDiffers } from './agent/replay.ts';
import { imageOf } from './harbor/settings.ts';
import { nodeMemory } from './node/capacity.ts';
import { identify } from './node/reaper.ts';
import { chooseRuntime } from './node/runtimes.ts';
import { type SandboxTask, startSandbox } from './rollout/containers.ts';
import { hasTerminal, openTerminal, ownScreen } from './terminal.ts';

/** `turns`: text of the recorded turns. `farm`: id of the farm, whose workers remove the sandbox if this process dies. */
const ShellFile = z.object({
  farm: z.string(),
  rollout_id: z.string(),
  run: RunRecord,
  instance: Instance,
  turns: z.string(),
});

const MOST_OUTPUT_BYTES = 10 * 1024 ** 2;
const MOST_COMMAND_MS = 24 * 3600_000;

/** Thrown by the policy when all recorded turns are replayed. */
class Reached extends Error {}

/**
 * @param path file of `swefarm shell`
 * @param command runs alone; null: opens a terminal, or executes the lines of the standard input if there is no terminal
 * @returns the exit code of the command, or 0
 * @throws UnusableError `replay_differs` if the sandbox is not as it was, or no runtime is usable
 */
export async function openReplayedShell(
  path: string,
  command: string | null,
  config: WorkerConfig,
  signal: AbortSignal,
): Promise<number> {
  const { farm, rollout_id, run, instance, turns } = ShellFile.parse(
    JSON.parse(await readFile(path, 'utf8')),
  );
  const log = createLog({ log_level: 'warn', log_format: 'auto' });
  const { runtime } = await chooseRuntime(config, log, signal);
  await using _runtime = runtime;
  const { worker, pid, pid_started } = identify(farm, config.worker_id, config.node);
  const removals = createRemovals();
  const services = {
    ...{ runtime, removals, config, cleanPlans: new Set<string>(), nodeMemoryBytes: nodeMemory(config) },
    owner: { farm, worker, pid, pid_started },
  };
  const task: SandboxTask = { run, instance, signal, log, job: { rollout_id }, attempt: 1, services };
  try {
    const image = await imageOf(instance, runtime, signal);
    await using sandbox = await startSandbox(task, image);
    const { turns: recorded } = parseTurns(turns);
    await replay(task, recorded, { shell: sandbox.shell, workdir: sandbox.container.workdir });
    process.stderr.write(
      `sandbox of ${rollout_id} on ${runtime.name}, as it was after turn ${recorded.length}\n`,
    );
    if (command !== null) return await runOne(sandbox.shell, command, signal);
    const activate = instance.environment?.activate ?? run.sandbox.activate;
    if (await showTerminal(sandbox.container, activate, signal)) return 0;
    return await readCommands(sandbox.shell, signal);
  } finally {
    await removals.finished();
  }
}

/** Runs the commands of the recorded turns as the agent's loop does, without a policy. */
async function replay(
  { run, instance, signal }: SandboxTask,
  turns: ReturnType<typeof parseTurns>['turns'],
  { shell, workdir }: { shell: Shell; workdir: string },
): Promise<void> {
  if (!run.policy)
    throw new UnusableError('replay_differs', 'the run has no policy, so its rollouts have no turns');
  const ask = async (): Promise<never> => {
    throw new Reached();
  };
  const pause = { paused: false, seconds: () => 0, onChange: () => () => undefined };
  const policy = {
    ...{ endpoint: '', config: run.policy, pause, complete: ask, openLine: () => ask },
    ...{ throughput: () => null, detokenize: async () => null },
    ...{ modelLength: async () => null, countTokens: async () => null },
  };
  const mostSeconds = run.agent.time_limit;
  const nothing = () => undefined;
  const deps = {
    turns,
    begun: null,
    mostSeconds,
    onRecord: nothing,
    onBegin: nothing,
    onOver: nothing,
    onResumed: nothing,
  };
  const { beforeTurn, policy: recorded } = openReplay(policy, deps);
  const task = { instance, config: run.agent, workdir };
  try {
    await runMiniAgent(task, { shell, policy: recorded, signal, beforeTurn });
  } catch (error) {
    if (error instanceof ReplayDiffers) throw new UnusableError('replay_differs', error.message);
    if (!(error instanceof Reached)) throw error;
  }
}

/** Runs a terminal. Returns false if this process has no terminal, or if the image has no program that makes one. */
async function showTerminal(container: Container, activate: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  if (!(await hasTerminal(container, signal))) {
    process.stderr.write(
      'the image has neither python3 nor script: each line is a command, without a terminal\n',
    );
    return false;
  }
  using screen = ownScreen();
  await openTerminal(container, activate, screen, signal);
  return true;
}

async function readCommands(shell: Shell, signal: AbortSignal): Promise<number> {
  const terminal = process.stdin.isTTY === true;
  const input = createInterface({
    input: process.stdin,
    output: process.stderr,
    prompt: '$ ',
    terminal,
    signal,
  });
  input.prompt();
  for await (const line of input) {
    if (line.trim() === 'exit') break;
    if (line.trim() !== '') {
      const code = await runOne(shell, line, signal);
      if (code !== 0) process.stderr.write(`exit code ${code}\n`);
    }
    input.prompt();
  }
  return 0;
}

async function runOne(shell: Shell, command: string, signal: AbortSignal): Promise<number> {
  const limits = { timeoutMs: MOST_COMMAND_MS, maxOutputBytes: MOST_OUTPUT_BYTES };
  const { head, tail, exitCode }: CommandResult = await shell.run(command, { ...limits, signal });
  process.stdout.write(head);
  if (tail) process.stdout.write(tail);
  return exitCode ?? 1;
}
