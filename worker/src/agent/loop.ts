/**
 * The loop of the mini agent, modelled on mini-swe-agent: it asks the model, runs the command and sends the output, until the model submits
 * or a limit is reached. Messages are only appended to the history. Mistakes of the model are return values, not errors.
 */
import { expertModeOf, type PolicyReply, recordTokens, TokenBreak, turnOf } from '@swefarm/policy';
import { SandboxKilledError } from '@swefarm/sandbox';
import {
  costOf,
  type ExitStatus,
  type Message,
  RolloutFailure,
  type TokenLimit,
  type Turn,
} from '@swefarm/shared';
import { type Action, type Call, parseAction } from './actions.ts';
import type { AgentDeps, AgentEnd, AgentTask } from './agent.ts';
import { endOf, feedbackOn } from './execute.ts';
import { executeCall } from './executecall.ts';
import { openPrompts } from './prompts.ts';
import { readSources } from './sources.ts';
import { addMessage, openRolloutState, type RolloutState } from './state.ts';
import { sequenceTokens, tokensOf } from './turntokens.ts';

/** Throws RolloutFailure of policy and sandbox, UsageError for a bad prompt set, the signal's reason when aborted. */
export async function runMiniAgent(task: AgentTask, deps: AgentDeps): Promise<AgentEnd> {
  deps.signal.throwIfAborted();
  const prompts = await openPrompts(task.config, task.workdir);
  using state = openRolloutState(task, deps, prompts, await readSources(task, deps));
  try {
    for (;;) {
      deps.beforeTurn?.(state.trajectory);
      deps.signal.throwIfAborted();
      const stop = limitReached(state) ?? (await takeTurn(state));
      if (stop) return endOf(state, stop.exit_status, stop.submission);
    }
  } catch (error) {
    if (error instanceof SandboxKilledError) return endOf(state, null);
    throw error;
  }
}

type Stop = { exit_status: ExitStatus; submission: string | null };
const stopAt = (exit_status: ExitStatus): Stop => ({ exit_status, submission: null });

function limitReached(state: RolloutState): Stop | null {
  if (state.trajectory.turns.length >= state.task.config.step_limit) return stopAt('turn_limit');
  if (state.remainingSeconds() <= 0) return stopAt('time_limit');
  if (isSpent(state)) return stopAt('turn_limit');
  const limit = tokenLimitMet(state);
  return limit && outOfTokens(state, limit);
}

/** Returns whether the answers have used up the tokens or the dollars that the run allows. */
function isSpent({ task, trajectory, deps }: RolloutState): boolean {
  const { answer_limit: most, cost_limit: dollars } = task.config;
  if (most === null && dollars === null) return false;
  const used = trajectory.turns.map(tokensOf);
  const prompt = used.reduce((sum, turn) => sum + turn.prompt, 0);
  const completion = used.reduce((sum, turn) => sum + turn.answer, 0);
  const { price } = deps.policy.config;
  return (
    (most !== null && completion >= most) ||
    (dollars !== null && price !== undefined && costOf({ prompt, completion }, price) >= dollars)
  );
}

function tokenLimitMet({ task, trajectory }: RolloutState): 'context_limit' | 'max_sequence_tokens' | null {
  const { context_limit: context, max_sequence_tokens: budget } = task.config;
  const { turns } = trajectory;
  if (budget !== null && sequenceTokens(turns) >= budget) return 'max_sequence_tokens';
  const last = tokensOf(turns.at(-1));
  const all = last.prompt + last.answer;
  return context !== null && all >= context ? 'context_limit' : null;
}

function outOfTokens(state: RolloutState, limit: TokenLimit): Stop {
  state.trajectory.limit = limit;
  return stopAt('context_limit');
}

async function takeTurn(state: RolloutState): Promise<Stop | null> {
  const reply = await askPolicy(state);
  if ('exit_status' in reply) return reply;
  const turn = recordAnswer(state, reply);
  try {
    await recordTurnTokens(state, reply, turn);
    // The routed experts reference the whole answer in memory, so they are released before a command that may take minutes.
    reply.routed_experts = null;
    state.deps.onAnswer?.(state.trajectory);
    state.cut = reply.finish_reason === 'length';
    const apart = state.deps.policy.config.token_mode === 'token-in';
    const action = parseAction(reply.message, state.task.config, apart);
    if (state.cut || 'malformed' in action) return reject(state, reply.message, action);
    state.malformedInARow = 0;
    return await act(state, turn, action.calls);
  } finally {
    state.deps.onTurn?.(state.trajectory);
  }
}

async function askPolicy(state: RolloutState): Promise<PolicyReply | Stop> {
  const { deps, trajectory, tools } = state;
  const { pause } = deps.policy;
  const clock = () => performance.now() / 1000 - pause.seconds();
  const started = clock();
  try {
    const reply = await deps.policy.complete(trajectory.messages, tools, state.signal);
    if (!('context_overflow' in reply)) return reply;
    // Before the first turn an overflow is a failure: the context is too small, or the run requests too many tokens.
    if (trajectory.turns.length > 0) return outOfTokens(state, reply.of ?? 'endpoint');
    const why = `${deps.policy.endpoint}: the first prompt leaves no room for an answer: ${reply.message}`;
    throw new RolloutFailure('policy_context', why.slice(0, 400));
  } catch (error) {
    deps.signal.throwIfAborted();
    if (state.signal.aborted) return stopAt('time_limit');
    // Some servers parse the arguments of earlier tool calls again, and refuse a history in which the model wrote invalid JSON.
    const isRefusal = error instanceof RolloutFailure && error.failureClass === 'policy_bad_request';
    if (isRefusal && state.badArguments) return stopAt('format_limit');
    throw error;
  } finally {
    state.modelSeconds += clock() - started;
  }
}

function recordAnswer(state: RolloutState, reply: PolicyReply): Turn {
  const { messages, turns } = state.trajectory;
  const turn = turnOf(reply, messages.push(reply.message) - 1);
  turns.push(turn);
  return turn;
}

/** Throws RolloutFailure `policy_tokens` when tokens or experts that the run requires are missing, unusable or not contiguous. */
async function recordTurnTokens(state: RolloutState, reply: PolicyReply, turn: Turn): Promise<void> {
  const { trajectory, ledger, deps } = state;
  try {
    const { config } = deps.policy;
    const { length: number } = trajectory.turns;
    turn.tokens = recordTokens(ledger, reply, number, config.require_tokens, expertModeOf(config));
  } catch (error) {
    throw error instanceof TokenBreak ? await withTexts(error, state) : error;
  }
  if (turn.tokens) trajectory.contiguous = ledger.contiguous;
}

async function withTexts(broken: TokenBreak, { deps }: RolloutState): Promise<RolloutFailure> {
  if (broken.got === null) return broken;
  const texts = await deps.policy.detokenize([broken.seen, broken.got], deps.signal);
  if (texts === null) return broken;
  const [seen, got] = texts.map((text) => JSON.stringify(text.slice(0, 40)));
  return new RolloutFailure('policy_tokens', `${broken.message} (${seen} became ${got})`);
}

/**
 * Runs nothing of a malformed answer and sends the model the reason. An answer cut by the token limit counts as malformed. If the answer
 * that reaches `format_limit` was cut, the rollout ends with context_limit and is graded; with format_limit it would earn nothing.
 */
function reject(state: RolloutState, message: Message, action: Action): Stop | null {
  const { config } = state.task;
  const malformed = 'malformed' in action ? action : null;
  state.badArguments ||= malformed?.badArguments ?? false;
  if (!state.cut) state.malformedAnswers++;
  state.malformedInARow++;
  if (state.malformedInARow >= config.format_limit)
    // A limit of the run may have reduced the number of tokens that the request asked for.
    return state.cut ? outOfTokens(state, tokenLimitMet(state) ?? 'max_tokens') : stopAt('format_limit');
  const notice = state.cut
    ? state.prompts.render('token_cut')
    : state.prompts.render('format_error', { reason: malformed?.malformed ?? '' });
  const toolCalls = message.tool_calls ?? [];
  // Each tool call needs an answer; otherwise the endpoint refuses the history.
  for (const { id } of toolCalls) addMessage(state, notice, id);
  if (toolCalls.length === 0) addMessage(state, notice, null);
  return null;
}

async function act(state: RolloutState, turn: Turn, calls: readonly Call[]): Promise<Stop | null> {
  for (const call of calls) {
    if (call.kind === 'submit') {
      const stop = await submit(state, call.submission, call.toolCallId);
      if (stop) return stop;
      continue;
    }
    if (state.remainingSeconds() <= 0) return stopAt('time_limit');
    const timeoutSeconds = Math.min(state.task.config.step_timeout, state.remainingSeconds());
    const done = await executeCall(state, turn, call, timeoutSeconds);
    if (!done.submitted) addMessage(state, done.observation, call.toolCallId);
    else {
      const stop = await submit(state, done.submitted.text, call.toolCallId);
      if (stop) return stop;
    }
  }
  return null;
}

/** Ends the rollout, unless the submit gets feedback: then the model reads it and goes on. */
async function submit(
  state: RolloutState,
  submission: string | null,
  toolCallId: string | null,
): Promise<Stop | null> {
  const feedback = await state.stopClock(() => feedbackOn(state, submission));
  if (feedback === null) return { exit_status: 'submitted', submission };
  addMessage(state, feedback, toolCallId);
  return null;
}
