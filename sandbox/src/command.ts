/** What the agent sees of one command, and the shell it runs in. */
export type CommandResult = {
  /** Null when its time limit killed it, or the shell died during it. */
  exitCode: number | null;
  /** Head of the output; all of it when `tail` is null. */
  head: Buffer;
  /** Tail of an output longer than the cap; the middle is gone. */
  tail: Buffer | null;
  outputBytes: number;
  seconds: number;
  note: 'timed_out' | 'shell_reopened' | 'killed_by_limit' | null;
};

export type RunOptions = {
  timeoutMs: number;
  /** Bytes kept of head and tail together. */
  maxOutputBytes: number;
  signal: AbortSignal;
};

/** A shell that stays open in a container: nothing that one command does to it breaks the next. */
export interface Shell extends AsyncDisposable {
  /**
   * Runs one command in a forked subshell with its own process group; the host's clock limits it.
   * Throws RolloutFailure `sandbox_lost` when the container is gone for another reason than its own limit, `no_bash` when no
   * shell can be opened at all, and {@link SandboxKilledError} when its own limit killed the container.
   */
  run(command: string, options: RunOptions): Promise<CommandResult>;
}

/** The sandbox was killed by its own limit: the agent caused it, so it is no failure and has its own reward row. */
export class SandboxKilledError extends Error {
  override readonly name = 'SandboxKilledError';
}
