/**
 * The agent `external`: an external driver chooses the commands. Shell, limits and observations are those of the mini agent. The trajectory
 * contains the tool calls, but not the driver's own conversation, which the farm does not receive.
 */
import { SandboxKilledError } from '@swefarm/sandbox';
import type { SessionAnswer, SessionInput, Turn } from '@swefarm/shared';
import type { AgentDeps, AgentEnd, AgentTask } from './agent.ts';
import { type CommandState, endOf, executeCommand, NO_COMMANDS } from './execute.ts';
import { openPrompts } from './prompts.ts';

export type Driver = {
  /** Returns the command after number `done`; null if none arrives within `waitMs`, or if another attempt has taken the session. */
  next(done: number, waitMs: number): Promise<{ seq: number; input: SessionInput } | null>;
  reply(answer: SessionAnswer): Promise<void>;
};

type ExternalDeps = Pick<AgentDeps, 'shell' | 'signal' | 'onTurn'> & { driver: Driver };

/** The time in which the agent waits for the driver counts as time of the model. */
type State = CommandState & { readonly deps: ExternalDeps };

/** Longest wait for one notification, because a notification may be lost. */
const ASK_AGAIN_MS = 5_000;

/** Throws RolloutFailure of the sandbox, UsageError for a bad prompt set, the signal's reason when aborted. */
export async function runExternalAgent(task: AgentTask, deps: ExternalDeps): Promise<AgentEnd> {
  const { config } = task;
  const state: State = {
    task,
    deps,
    prompts: await openPrompts(config, task.workdir),
    trajectory: {
      format: 'swefarm-trajectory-1',
      token_mode: null,
      model: null,
      endpoint: null,
      messages: [],
      turns: [],
      exit_status: null,
    },
    ...NO_COMMANDS,
  };
  const until = performance.now() + config.time_limit * 1000;
  try {
    for (let done = 0; done < config.step_limit; done++) {
      const next = await waitForCommand(state, done, until);
      if (next === null) return endOf(state, 'time_limit');
      if (next.input.kind === 'submit') return endOf(state, 'submitted');
      const left = (until - performance.now()) / 1000;
      const timeout = Math.min(next.input.timeout ?? config.step_timeout, config.step_timeout, left);
      const submitted = await runCommand(state, next.seq, next.input.command, Math.max(timeout, 0.001));
      if (submitted) return endOf(state, 'submitted', submitted.text);
    }
    return endOf(state, 'turn_limit');
  } catch (error) {
    if (error instanceof SandboxKilledError) return endOf(state, null);
    throw error;
  }
}

async function waitForCommand(state: State, done: number, until: number) {
  const { signal, driver } = state.deps;
  const from = performance.now();
  try {
    for (;;) {
      signal.throwIfAborted();
      const left = until - performance.now();
      if (left <= 0) return null;
      const next = await driver.next(done, Math.min(ASK_AGAIN_MS, left));
      if (next) return next;
    }
  } finally {
    state.modelSeconds += (performance.now() - from) / 1000;
  }
}

async function runCommand(state: State, seq: number, command: string, timeoutSeconds: number) {
  const { driver, onTurn } = state.deps;
  const { trajectory } = state;
  const id = `call_${seq}`;
  const called = { name: 'bash', arguments: JSON.stringify({ command }) };
  const tool_calls = [{ id, type: 'function' as const, function: called }];
  const turn: Turn = {
    message: trajectory.messages.push({ role: 'assistant', content: null, tool_calls }) - 1,
    finish_reason: null,
    model_seconds: 0,
    usage: null,
    policy_version: { start: null, end: null },
    tokens: null,
    commands: [],
  };
  trajectory.turns.push(turn);
  try {
    const done = await executeCommand(state, turn, command, timeoutSeconds);
    if (done.submitted) return done.submitted;
    const { observation } = done;
    trajectory.messages.push({ role: 'tool', tool_call_id: id, content: observation });
    const [record] = turn.commands;
    await driver.reply({
      seq,
      observation,
      exit_code: record?.exit_code ?? null,
      seconds: record?.seconds ?? 0,
      note: record?.note ?? null,
    });
    return null;
  } finally {
    onTurn?.(trajectory);
  }
}
