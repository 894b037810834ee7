/**
 * The agent `external`: an external driver chooses the inputs. Shell, limits and observations are those of the mini agent. The trajectory
 * contains the tool calls, but not the driver's own conversation, which the farm does not receive.
 */
import { SandboxKilledError } from '@swefarm/sandbox';
import type { SessionAnswer, SessionInput } from '@swefarm/shared';
import type { AgentEnd, AgentTask } from './agent.ts';
import { endOf, feedbackOn, NO_COMMANDS } from './execute.ts';
import { callId, type InputDeps, type InputState, runInput } from './inputs.ts';
import { openPrompts } from './prompts.ts';

export type Driver = {
  /** Returns the input after number `done`; null if none arrives within `waitMs`, or if another attempt has taken the session. */
  next(
    done: number,
    waitMs: number,
  ): Promise<{ seq: number; input: SessionInput; content: Buffer | null } | null>;
  reply(answer: SessionAnswer, content?: Buffer): Promise<void>;
  /** Returns the time in ms, as of the last input, in which the time limit stood still. */
  pausedMs(): number;
};

type ExternalDeps = InputDeps & { driver: Driver };

/** The time in which the agent waits for the driver counts as time of the model. */
type State = InputState & { readonly deps: ExternalDeps };

/** Longest wait for one notification, because a notification may be lost. */
const ASK_AGAIN_MS = 5_000;

/** Throws RolloutFailure of the sandbox, UsageError for a bad prompt set, the signal's reason when aborted. */
export async function runExternalAgent(task: AgentTask, deps: ExternalDeps): Promise<AgentEnd> {
  const { config } = task;
  const { driver } = deps;
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
  const from = performance.now();
  /** The time in which submits were judged, which does not count. */
  let judgedMs = 0;
  const leftMs = (): number =>
    config.time_limit * 1000 - (performance.now() - from - judgedMs - driver.pausedMs());
  try {
    for (let done = 0; done < config.step_limit; done++) {
      const next = await waitForInput(state, done, leftMs);
      if (next === null) return endOf(state, 'time_limit');
      const { seq, input, content } = next;
      if (input.kind === 'submit') return endOf(state, 'submitted');
      const reply = await runInput(state, seq, input, content, leftMs() / 1000);
      if (!('submitted' in reply)) await driver.reply(reply.answer, reply.content);
      else {
        const judgedFrom = performance.now();
        const feedback = await feedbackOn(state, reply.submitted.text);
        if (feedback === null) return endOf(state, 'submitted', reply.submitted.text);
        judgedMs += performance.now() - judgedFrom;
        state.trajectory.messages.push({ role: 'tool', tool_call_id: callId(seq), content: feedback });
        await driver.reply({ seq, observation: feedback, exit_code: 0, seconds: 0, note: null });
      }
    }
    return endOf(state, 'turn_limit');
  } catch (error) {
    if (error instanceof SandboxKilledError) return endOf(state, null);
    throw error;
  }
}

async function waitForInput(state: State, done: number, leftMs: () => number) {
  const { signal, driver } = state.deps;
  const from = performance.now();
  try {
    for (;;) {
      signal.throwIfAborted();
      // The call also tells how long the clock has stood still, so it precedes the check of the limit.
      const next = await driver.next(done, Math.max(0, Math.min(ASK_AGAIN_MS, leftMs())));
      if (leftMs() <= 0) return null;
      if (next) return next;
    }
  } finally {
    state.modelSeconds += (performance.now() - from) / 1000;
  }
}
