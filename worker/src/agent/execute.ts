/** Runs one command of an agent or of an external driver, and renders the observation. */
import type { CommandResult } from '@swefarm/sandbox';
import type { CommandRecord, ExitStatus, Trajectory, Turn } from '@swefarm/shared';
import type { AgentDeps, AgentEnd, AgentTask } from './agent.ts';
import { outputCap, parseSubmission, renderObservation } from './observation.ts';
import type { Prompts } from './prompts.ts';

/** The part of an agent's state that both kinds of agents have. */
export type CommandState = {
  readonly task: Pick<AgentTask, 'config'>;
  readonly deps: Pick<AgentDeps, 'shell' | 'signal' | 'onSubmit'>;
  readonly prompts: Prompts;
  readonly trajectory: Trajectory;
  /** Whether the token limit cut the last answer. */
  cut: boolean;
  /** Answers of a wrong form, without cut ones; null: a driver has the answers. */
  malformedAnswers: number | null;
  lastCommand: string | null;
  repeats: number;
  modelSeconds: number;
  commandSeconds: number;
};

export const NO_COMMANDS = {
  cut: false,
  malformedAnswers: null,
  lastCommand: null,
  repeats: 0,
  modelSeconds: 0,
  commandSeconds: 0,
};

/** Ends the trajectory. `exitStatus` is null when a limit killed the sandbox or a command broke it. */
export function endOf(
  state: CommandState,
  exitStatus: ExitStatus | null,
  submission: string | null = null,
): AgentEnd {
  state.trajectory.exit_status = exitStatus;
  return {
    exit_status: exitStatus,
    submission,
    trajectory: state.trajectory,
    cut_by_token_limit: state.cut,
    malformed_answers: state.malformedAnswers,
    sandbox_killed: exitStatus === null,
    model_seconds: state.modelSeconds,
    command_seconds: state.commandSeconds,
  };
}

export type Executed =
  | { submitted: { text: string | null } }
  | { submitted: null; observation: string; result: CommandResult };

/**
 * `script`: what the shell runs, if not the command alone. `label`: how the record shows it. `rawBytes`: most bytes of raw output; the
 * command then never submits.
 */
type Execution = { script?: string; label?: string; rawBytes?: number };

/** Throws the errors of {@link Shell.run}; even then `turn` contains the record of the command. */
export async function executeCommand(
  state: CommandState,
  turn: Turn,
  command: string,
  timeoutSeconds: number,
  { script = command, rawBytes = 0, label = command }: Execution = {},
): Promise<Executed> {
  const { config } = state.task;
  const captureBytes = Math.max(
    rawBytes,
    outputCap(config.observation_limit, config.patch_source, state.prompts),
  );
  const result = await runCommand(state, turn, { command: label, script, timeoutSeconds, captureBytes });
  const submitted = rawBytes === 0 ? parseSubmission(result, config.patch_source) : null;
  if (submitted) return { submitted };
  const observation = renderObservation(result, {
    prompts: state.prompts,
    limit: config.observation_limit,
    timeoutSeconds,
    repeats: countRepeats(state, command),
  });
  return { submitted: null, observation, result };
}

type Run = { command: string; script: string; timeoutSeconds: number; captureBytes: number };

async function runCommand(state: CommandState, turn: Turn, run: Run): Promise<CommandResult> {
  const { command, script, timeoutSeconds, captureBytes } = run;
  return await recordCommand(state, turn, command, async (record) => {
    const result = await state.deps.shell.run(script, {
      timeoutMs: Math.max(1, Math.ceil(timeoutSeconds * 1000)),
      maxOutputBytes: captureBytes,
      signal: state.deps.signal,
    });
    record.exit_code = result.exitCode;
    record.output_bytes = result.outputBytes;
    record.note = result.note;
    return result;
  });
}

/** Adds the record of one command or call to the turn, which `work` completes. */
export async function recordCommand<T>(
  state: CommandState,
  turn: Turn,
  command: string,
  work: (record: CommandRecord) => Promise<T>,
): Promise<T> {
  const started = performance.now();
  const record: CommandRecord = { command, exit_code: null, seconds: 0, output_bytes: 0, note: null };
  turn.commands.push(record);
  try {
    return await work(record);
  } finally {
    record.seconds = (performance.now() - started) / 1000;
    state.commandSeconds += record.seconds;
  }
}

/** Counts a submit. Returns the feedback on it; null: it ends the rollout, because the tests pass or the run allows no further submit. */
export async function feedbackOn(state: CommandState, submission: string | null): Promise<string | null> {
  const { task, deps, trajectory, prompts } = state;
  const { max_submits: most } = task.config;
  if (most === 1) return null;
  trajectory.submits = (trajectory.submits ?? 0) + 1;
  const left = most - trajectory.submits;
  const feedback = left > 0 ? await deps.onSubmit?.(submission) : null;
  return feedback ? prompts.render('feedback', { ...feedback, left }) : null;
}

/** Returns how often the command ran in a row; 0 below the limit from which the model is warned. */
export function countRepeats(state: CommandState, command: string): number {
  const { collapse_limit: limit } = state.task.config;
  state.repeats = command === state.lastCommand ? state.repeats + 1 : 1;
  state.lastCommand = command;
  return limit > 0 && state.repeats >= limit ? state.repeats : 0;
}
