/**
 * The agent `installed`: a program of somebody else works in the sandbox and asks the recording endpoint of its rollout. The endpoint
 * enforces the limits, and decides the end of the rollout if it reaches one; otherwise the rules of the card do.
 */
import { type AgentStart, fillCard } from '@swefarm/agents';
import { createRecorderServer, openRecorder, type Recorder } from '@swefarm/recorder';
import { type ExecResult, isCausedByCode, requireOwnKills } from '@swefarm/sandbox';
import {
  allTurns,
  type ExitStatus,
  lastMainTurn,
  newId,
  RolloutFailure,
  type Trajectory,
  waitAtMost,
} from '@swefarm/shared';
import type { AgentEnd, AgentTask, PolicyOfLines } from '../agent.ts';
import { startDeadline } from '../deadline.ts';
import { openPrompts } from '../prompts.ts';
import { statusOf } from './ends.ts';
import { examineImage } from './image.ts';
import { readOutputs } from './outputs.ts';
import { HOME, OUT, type Program, startProgram } from './program.ts';
import { recorderOptions } from './recording.ts';
import type { InstalledDeps, InstalledTask } from './task.ts';

/** Time in which an agent may end by itself after the endpoint has refused a request. */
const GRACE_MS = 10_000;
/** Context that the agent is told if neither the run nor the endpoint limits it. */
const UNKNOWN_CONTEXT = 128 * 1024;
/** Exit code of a program that was killed, by the kernel for lack of memory among others. */
const KILLED = 128 + 9;
const SHOWN_OUTPUT = 200;

/**
 * Runs the program until it ends or a limit is reached, and then kills all that it started. Throws RolloutFailure of policy and sandbox,
 * `agent_unfit`, or `agent_start` if the program ended before the model answered; UsageError for a bad prompt set; the signal's reason
 * when aborted.
 */
export async function runInstalledAgent(task: InstalledTask, deps: InstalledDeps): Promise<AgentEnd> {
  const { card, config } = task;
  const { container, policy, signal } = deps;
  signal.throwIfAborted();
  const image = await examineImage(container, card, task.activate, signal);
  const key = newId();
  const values = await startValues(task, policy, image.path, key);
  const fill = (endpoint: string): AgentStart =>
    fillCard(card, config.options, { ...values, endpoint }, config.option_files);
  const { overflow } = fill('');
  await using recorder = openRecorder({
    ...recorderOptions(task, deps),
    card: { ...card, api: { ...card.api, overflow } },
    key,
  });
  const server = createRecorderServer(recorder);
  await using listener = await container.listen((socket) => server.emit('connection', socket), signal);
  const start = fill(`http://127.0.0.1:${listener.port}`);
  const started = performance.now() / 1000 - policy.pause.seconds();
  const program = await startProgram(container, start, { activate: task.activate, path: image.path }, signal);
  let result: ExecResult | null = null;
  try {
    const played = await play(program, recorder, task, deps);
    result = played.result;
    await recorder.idle();
    const seconds = performance.now() / 1000 - policy.pause.seconds() - started;
    if (result) deps.onOutputs(await readOutputs(container, start.outputs, result, deps));
    const byRule = async () => result && (await statusOf(container, start.ends, result.exitCode, signal));
    const status = played.over ?? (await byRule());
    requireStarted(recorder, result, status);
    recorder.requireTrained();
    return endOf(recorder, status, seconds, config);
  } finally {
    deps.onFacts({ exit_code: result?.exitCode ?? null, ...recorder.facts() });
  }
}

/** `over`: the limit that ended the rollout; null: the program ended by itself. `result`: null if a limit killed the sandbox. */
type Played = { over: ExitStatus | null; result: ExecResult | null };

/** Waits for the end of the program or of the rollout, and kills what is left of the program. */
async function play(
  program: Program,
  recorder: Recorder,
  { config }: InstalledTask,
  { policy, container, suspect, signal }: InstalledDeps,
): Promise<Played> {
  using _deadline = startDeadline(config.time_limit, policy.pause, () => recorder.close('time_limit'));
  try {
    const by = await Promise.race([program.ended.then(() => 'program' as const), recorder.over]);
    if (by !== 'program') await waitAtMost(program.ended, GRACE_MS, signal);
    signal.throwIfAborted();
    recorder.close('ended');
    // The limit that a request met before the program ended, or a failure of the policy.
    const over = await recorder.over;
    await program.kill();
    const result = await program.ended;
    if ((await container.state()) === 'own_limit') return { over: null, result: null };
    if (result.exitCode === null || result.exitCode === KILLED) await requireOwnKills(container);
    return { over: over === 'ended' ? null : over, result };
  } catch (error) {
    recorder.close('ended');
    signal.throwIfAborted();
    if (await isCausedByCode(error, suspect)) return { over: null, result: null };
    // Nothing of the agent works on while the failure is handled.
    await program.kill().catch(() => undefined);
    throw error;
  }
}

async function startValues(task: InstalledTask, policy: PolicyOfLines, path: string, key: string) {
  const { instance, config, workdir } = task;
  const prompts = await openPrompts(config, workdir);
  const text = prompts.render('task', {
    problem_statement: instance.problem_statement,
    instance_id: instance.shown_id ?? instance.instance_id,
    repo: instance.repo,
    hints_text: instance.hints_text,
  });
  const limits = [config.context_limit, await policy.modelLength()].filter((limit) => limit !== null);
  return {
    ...{ key, path, task: text, home: HOME, out: OUT, work: workdir, model: policy.config.model },
    context: limits.length > 0 ? Math.min(...limits) : UNKNOWN_CONTEXT,
    turns: config.step_limit,
  };
}

/** Throws RolloutFailure `agent_start` if the program ended, or did nothing, before the model answered for the first time. */
function requireStarted(recorder: Recorder, result: ExecResult | null, status: ExitStatus | null): void {
  if (result === null || recorder.trajectory().turns.length > 0) return;
  // The policy may be slow: the caller tells that from the status.
  if (status === 'time_limit' && recorder.facts().requests > 0) return;
  const printed = result.output.toString('utf8').trim().slice(-SHOWN_OUTPUT);
  const how =
    status === 'time_limit'
      ? 'asked nothing within the time limit'
      : `ended with exit code ${result.exitCode}`;
  throw new RolloutFailure(
    'agent_start',
    `the program ${how} before the first answer of the model: ${printed}`,
  );
}

/** Returns whether the limit on all answers cut the last one: many agents take a cut answer for their last word. */
function isCutByLimit(trajectory: Trajectory, most: number | null): boolean {
  if (most === null) return false;
  const turns = allTurns(trajectory);
  const answered = turns.reduce((sum, { usage }) => sum + (usage?.completion_tokens ?? 0), 0);
  return answered >= most && turns.some(({ finish_reason: why }) => why === 'length');
}

function endOf(
  recorder: Recorder,
  ended: ExitStatus | null,
  seconds: number,
  { answer_limit: most }: AgentTask['config'],
): AgentEnd {
  const recorded = recorder.trajectory();
  const status = ended !== null && isCutByLimit(recorded, most) ? 'turn_limit' : ended;
  const modelSeconds = recorder.modelSeconds();
  return {
    exit_status: status,
    submission: null,
    trajectory: { ...recorded, exit_status: status },
    cut_by_token_limit: lastMainTurn(recorded)?.finish_reason === 'length',
    malformed_answers: recorder.malformedAnswers(),
    sandbox_killed: status === null,
    model_seconds: modelSeconds,
    // The program's own work and its commands.
    command_seconds: Math.max(0, seconds - modelSeconds),
  };
}
