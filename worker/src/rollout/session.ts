/** A session in the worker that runs it: opens the session, receives commands of the driver, watches the lease, and ends the session. */
import {
  errorMessage,
  RolloutFailure,
  type SessionEnd,
  type SessionInput,
  sleepAtMost,
} from '@swefarm/shared';
import type { AgentEnd } from '../agent/agent.ts';
import { type Driver, runExternalAgent } from '../agent/external.ts';
import type { InputDeps } from '../agent/inputs.ts';
import { abortOf } from './active.ts';
import type { Task } from './context.ts';
import { openFeedback } from './feedback.ts';
import { type OpenedAgent, recordTurn } from './openedagent.ts';
import { filesOf } from './sandboxfiles.ts';
import { retryUntilAnswered, untilAborted } from './untilanswered.ts';

const WATCH_MS = 1_000;
/** If Redis needs this long to answer, no driver could renew its lease either. */
const OUTAGE_MS = 2_000;

/** Opens the agent `external`: an external driver sends the commands of the session that this attempt takes. */
export async function openExternal(task: Task): Promise<OpenedAgent> {
  const { clock, play } = await openSession(task);
  return {
    work(sandbox) {
      const { container, shell } = sandbox;
      const feedback = openFeedback(task, sandbox);
      if (feedback) clock.judgedSeconds = feedback.seconds;
      const files = filesOf(sandbox, task.signal);
      return play({
        workdir: container.workdir,
        shell,
        files,
        ...(feedback ? { onSubmit: feedback.judge } : {}),
      });
    },
    pausedSeconds: () => clock.pausedMs / 1000 + clock.judgedSeconds(),
    policyPace: () => null,
    [Symbol.dispose]: () => undefined,
  };
}

/** The shell and files that execute the inputs of a session. */
type SessionSandbox = Pick<InputDeps, 'shell' | 'files' | 'onSubmit'> & { workdir: string };

/** Takes the session for this attempt. `play` executes the driver's inputs until the session ends. */
export async function openSession(task: Task) {
  await takeSession(task);
  const clock: SessionClock = { pausedMs: 0, judgedSeconds: () => 0 };
  return { clock, play: (sandbox: SessionSandbox) => playSession(task, sandbox, clock) };
}

/** The time that the clock of a session stood still, without pauses before the agent started. */
type SessionClock = { pausedMs: number; judgedSeconds: () => number };

type TaskDriver = Driver & {
  /** Returns the kind of the last input; null: the driver has given none. */
  lastKind(): SessionInput['kind'] | null;
};

/**
 * Runs the agent with the driver of the session, and then ends the session. Cancels the session about a second after the driver's lease
 * expires. Throws RolloutFailure `session_lost` when no other attempt can continue the session.
 */
async function playSession(task: Task, sandbox: SessionSandbox, clock: SessionClock): Promise<AgentEnd> {
  const { workdir, ...deps } = sandbox;
  const { services, run, instance, signal } = task;
  const { sessions } = services.farm;
  const id = run.run_id;
  const untilAnswered = retrierOf(task);
  const driver = await openDriver(task, clock);
  const over = new AbortController();
  const watching = watchLease(task, over.signal);
  try {
    const end = await runExternalAgent(
      { instance, config: run.agent, workdir },
      {
        ...{ ...deps, driver, signal },
        onTurn(trajectory) {
          recordTurn(task, trajectory);
          services.metrics.sessionInputs.inc({ kind: driver.lastKind() ?? '' });
        },
      },
    );
    await untilAnswered(() => sessions.end(id, end.exit_status ?? 'sandbox_killed'));
    return end;
  } catch (error) {
    const ended = endBy(task, driver.lastKind() !== null, error);
    if (ended) await untilAnswered(() => sessions.end(id, ended));
    if (ended === 'failed') throw new RolloutFailure('session_lost', errorMessage(error), { cause: error });
    throw error;
  } finally {
    over.abort();
    await watching;
  }
}

async function openDriver(task: Task, clock: SessionClock): Promise<TaskDriver> {
  const { services, run, signal } = task;
  const { sessions } = services.farm;
  const id = run.run_id;
  const untilAnswered = retrierOf(task);
  const pausedBefore = await untilAnswered(() => sessions.pausedMs(id, task.claim));
  let lastKind: SessionInput['kind'] | null = null;
  return {
    async next(done, waitMs) {
      const holder = { worker: services.identity.worker, claim: task.claim };
      const command = await untilAnswered(() => sessions.next(id, holder, done, waitMs, signal));
      if (command.status === 'gone') services.active.abort(task.job.rollout_id, 'superseded');
      else clock.pausedMs = Math.max(0, command.pausedMs - pausedBefore);
      if (command.status !== 'input') return null;
      lastKind = command.input.kind;
      return command;
    },
    async reply(answer, content) {
      await untilAnswered(() => sessions.reply(id, answer, content));
    },
    pausedMs: () => clock.pausedMs,
    lastKind: () => lastKind,
  };
}

async function takeSession(task: Task): Promise<void> {
  const { farm, identity, active } = task.services;
  const { sessions } = farm;
  const id = task.run.run_id;
  const untilAnswered = retrierOf(task);
  const taken = await untilAnswered(() => sessions.open(id, identity.worker, task.claim));
  if (taken === 'open') return;
  if (taken === 'lost') {
    await untilAnswered(() => sessions.end(id, 'failed'));
    throw new RolloutFailure('session_lost', `attempt ${task.attempt - 1} ended with the session's sandbox`);
  }
  await untilAnswered(() => sessions.end(id, 'lease'));
  active.abort(task.job.rollout_id, 'cancelled', 'lease');
  task.signal.throwIfAborted();
  throw new RolloutFailure('bug', 'the lease of the session has run out');
}

const retrierOf =
  (task: Task) =>
  <T>(call: () => Promise<T>): Promise<T> =>
    retryUntilAnswered('session', call, untilAborted(task));

/** Returns how an error ends the session; null: another attempt may start the session. */
function endBy(task: Task, hasTaken: boolean, error: unknown): SessionEnd | null {
  const aborted = abortOf(task.signal);
  if (aborted?.kind === 'cancelled') return aborted.cancelReason === 'lease' ? 'lease' : 'cancelled';
  if (aborted) return null;
  return hasTaken || !(error instanceof RolloutFailure) ? 'failed' : null;
}

async function watchLease(task: Task, over: AbortSignal): Promise<void> {
  const { farm, active } = task.services;
  const id = task.run.run_id;
  const until = AbortSignal.any([over, task.signal]);
  while (!until.aborted) {
    try {
      const requestedAt = performance.now();
      const expired = await farm.sessions.isExpired(id, task.claim);
      if (expired && performance.now() - requestedAt > OUTAGE_MS) await farm.sessions.renew([id]);
      else if (expired && !until.aborted) active.abort(task.job.rollout_id, 'cancelled', 'lease');
    } catch (error) {
      task.log.debug({ err: errorMessage(error) }, 'lease of the session not read');
    }
    await sleepAtMost(WATCH_MS, until);
  }
}
