/** State of one rollout of the mini agent: history, clock, and counters of consecutive events. */
import { openLedger, type TokenLedger } from '@swefarm/policy';
import { effectiveSampling, type Message, type ToolDefinition } from '@swefarm/shared';
import { toolDefinitions } from './actions.ts';
import type { AgentDeps, AgentTask } from './agent.ts';
import { type Pause, startDeadline } from './deadline.ts';
import { NO_COMMANDS } from './execute.ts';
import type { CallState } from './executecall.ts';
import type { Prompts } from './prompts.ts';
import type { Sources } from './sources.ts';

export type RolloutState = Disposable &
  CallState & {
    readonly task: AgentTask;
    readonly deps: AgentDeps;
    readonly tools: readonly ToolDefinition[];
    readonly ledger: TokenLedger;
    /** Aborts when the rollout is aborted or the agent's time is over. */
    readonly signal: AbortSignal;
    remainingSeconds(): number;
    malformedAnswers: number;
    /** Stops the agent's clock while the given work runs. */
    stopClock<T>(work: () => Promise<T>): Promise<T>;
    malformedInARow: number;
    /** Whether the history contains an answer with `badArguments` (see `Action` of actions.ts). */
    badArguments: boolean;
  };

/** Starts the clock and begins the history with two messages. Dispose the state to stop the clock. */
export function openRolloutState(
  task: AgentTask,
  deps: AgentDeps,
  prompts: Prompts,
  sources: Sources,
): RolloutState {
  const { config, instance } = task;
  const { config: policy } = deps.policy;
  const values = {
    problem_statement: instance.problem_statement,
    instance_id: instance.shown_id ?? instance.instance_id,
    repo: instance.repo,
    hints_text: instance.hints_text,
    ...sources,
  };
  const pictures = config.pictures === 'send' ? (instance.pictures ?? []) : [];
  const tools = toolDefinitions(config);
  const clock = startClock(config.time_limit, deps.policy.pause, deps.signal);
  return {
    task,
    deps,
    prompts,
    tools,
    trajectory: {
      format: 'swefarm-trajectory-1',
      token_mode: policy.token_mode,
      model: policy.model,
      endpoint: deps.policy.endpoint,
      sampling: effectiveSampling(policy),
      messages: [
        { role: 'system', content: prompts.render('system', values) },
        {
          role: 'user',
          content: prompts.render('instance', values),
          ...(pictures.length > 0 ? { pictures } : {}),
        },
      ],
      turns: [],
      exit_status: null,
      ...(tools.length > 0 ? { tools } : {}),
    },
    ledger: openLedger(),
    ...clock,
    malformedInARow: 0,
    badArguments: false,
    editor: null,
    ...NO_COMMANDS,
    malformedAnswers: 0,
  };
}

/** Adds a message for the model: the answer to a tool call, or a user message. */
export function addMessage(state: RolloutState, content: string, toolCallId: string | null): void {
  const message: Message =
    toolCallId === null ? { role: 'user', content } : { role: 'tool', tool_call_id: toolCallId, content };
  state.trajectory.messages.push(message);
}

function startClock(timeLimitSeconds: number, pause: Pause, outer: AbortSignal) {
  const over = new AbortController();
  const end = () => over.abort(new Error('the agent has no time left'));
  let deadline = startDeadline(timeLimitSeconds, pause, end);
  const signal = AbortSignal.any([outer, over.signal]);
  return {
    signal,
    remainingSeconds: () => (signal.aborted ? 0 : deadline.remainingSeconds()),
    async stopClock<T>(work: () => Promise<T>): Promise<T> {
      const left = deadline.remainingSeconds();
      deadline[Symbol.dispose]();
      try {
        return await work();
      } finally {
        deadline = startDeadline(left, pause, end);
      }
    },
    [Symbol.dispose]: () => deadline[Symbol.dispose](),
  };
}
