/** The result of one command, and the shell that runs it. */
export type CommandResult = {
  /** Null when the time limit killed the command, or the shell died during it. */
  exitCode: number | null;
  /** Head of the output; the whole output when `tail` is null. */
  head: Buffer;
  /** Tail of an output above `maxOutputBytes`; the middle is dropped. */
  tail: Buffer | null;
  outputBytes: number;
  seconds: number;
  note: 'timed_out' | 'shell_reopened' | 'killed_by_limit' | null;
};

export type RunOptions = {
  timeoutMs: number;
  maxOutputBytes: number;
  signal: AbortSignal;
};

/** A shell that stays open in a container. A command cannot break later commands. */
export interface Shell extends AsyncDisposable {
  /**
   * Runs one command in a forked subshell with its own process group. Throws RolloutFailure `sandbox_lost` when the container
   * ended for another reason than its own limit, `no_bash` when no shell can be opened, `node_memory` when the node lacked
   * memory, and {@link SandboxKilledError} when its own limit killed the container.
   */
  run(command: string, options: RunOptions): Promise<CommandResult>;
}

/** Thrown if a limit killed the sandbox. The agent caused this, so the rollout does not fail, and the reward table has a row for it. */
export class SandboxKilledError extends Error {
  override readonly name = 'SandboxKilledError';
}
