/** How a rollout comes by its patch: an agent works in a sandbox, or the patch is given. */
import { RolloutFailure, type Trajectory } from '@swefarm/shared';
import type { AgentEnd } from '../agent/agent.ts';
import { runExternalAgent } from '../agent/external.ts';
import { givenPatch } from '../agent/given.ts';
import { runMiniAgent } from '../agent/loop.ts';
import { openPolicy } from '../agent/policy/policy.ts';
import { watchStandstill } from '../agent/policy/standstill.ts';
import type { Node } from '../node/node.ts';
import { filledDisk, holdsDisk, isOwnDoing } from '../sandbox/blame.ts';
import { diskIsFull, watchDisk } from '../sandbox/free.ts';
import type { PreparedContainer } from '../sandbox/prepared.ts';
import type { ReadyImage } from '../sandbox/runtime.ts';
import { takePatch } from '../sandbox/snapshot.ts';
import { startSandbox } from './containers.ts';
import { takeSession, withSession } from './session.ts';
import type { Staleness } from './staleness.ts';
import type { KeptWork, Task } from './task.ts';

export type AgentWork = {
  end: AgentEnd | null;
  patch: string | null;
  tooLarge: boolean;
  agentSeconds: number;
  /** As in RewardFacts. */
  policyPace: number | null;
};

type Sandbox = Awaited<ReturnType<typeof startSandbox>>;
/** An agent that is ready to begin, given its sandbox. */
type Player = Disposable & {
  play(sandbox: Sandbox): Promise<AgentEnd>;
  /** Seconds in which its clock stood still. */
  pausedSeconds(): number;
  pace(): number | null;
};

/** `clean` is started beside the agent, so that the evaluation need not wait for its container. */
export async function letAgentWork(
  task: Task,
  node: Node,
  image: ReadyImage,
  clean: PreparedContainer,
  staleness: Staleness,
): Promise<AgentWork> {
  const { run, clock, signal, trace } = task;
  using player =
    run.agent.type === 'external' ? await external(task, node) : await mini(task, node, staleness);
  await using sandbox = await clock.time('sandbox', () => startSandbox(task, node, image));
  if (run.evaluation.enabled) clean.begin();

  const agentClock = () => performance.now() / 1000 - player.pausedSeconds();
  const from = agentClock();
  using disk = watchDisk(node.runtime, () => holdsDisk(sandbox.suspect));
  const end = await clock.time('agent', () => player.play(sandbox));
  const agentSeconds = agentClock() - from;
  const took = { end, agentSeconds, policyPace: player.pace() };
  trace.trajectory = end.trajectory;
  clock.set('model', end.model_seconds);
  clock.set('command', end.command_seconds);

  if (end.sandbox_killed) return { ...took, patch: null, tooLarge: false };
  if (await diskIsFull(node.runtime)) {
    if (await filledDisk(sandbox.suspect))
      return { ...took, end: { ...end, sandbox_killed: true }, patch: null, tooLarge: false };
    throw new RolloutFailure('node_disk', 'the disk was full when the agent ended');
  }
  if (await disk.wasFull()) throw new RolloutFailure('node_disk', 'the disk was full while the agent worked');
  if (run.agent.patch_source === 'submission' && end.submission !== null) {
    return { ...took, patch: end.submission, tooLarge: false };
  }
  await sandbox.history.done;
  const taken = await clock.time('patch', () => patchOf(sandbox, signal));
  const patch = taken?.patch.toString('utf8') ?? null;
  return { ...took, patch, tooLarge: taken?.tooLarge ?? false };
}

/** Null when the agent left no tree that a patch can be taken from: git, our marks, the tree itself were there when it began. */
async function patchOf({ container, snapshot, suspect }: Sandbox, signal: AbortSignal) {
  try {
    return await takePatch(container, snapshot, signal);
  } catch (error) {
    if (await isOwnDoing(error, suspect)) return null;
    throw error;
  }
}

async function mini(task: Task, node: Node, staleness: Staleness): Promise<Player> {
  const { run, instance, signal } = task;
  if (!run.policy)
    throw new RolloutFailure('instance_invalid', 'the run names no policy endpoint for agent mini');
  using stack = new DisposableStack();
  const followed = stack.use(await node.policies.follow(run.policy));
  const policy = stack.use(
    openPolicy(run.policy, {
      apiKey: task.apiKey,
      rolloutId: task.job.rollout_id,
      attempt: task.attempt,
      limits: {
        contextLimit: run.agent.context_limit,
        sequenceBudget: run.agent.max_sequence_tokens,
      },
      followed,
      endpoints: node.endpoints,
      awaiting: () =>
        watchStandstill({
          followed,
          clock: node.farm.clock,
          limitMs: node.policyPauseLimitMs,
          onOverdue(why) {
            task.log.warn({ why }, 'handed back: it has waited too long for its policy');
            node.active.letGo(task.job.rollout_id, why);
          },
        }),
      log: task.log,
    }),
  );
  const told = onTurn(task, node);
  const tellPace = () => {
    const heard = policy.heard();
    if (heard) node.paces.note(run.run_id, task.job.rollout_id, heard);
  };
  const owned = stack.move();
  return {
    play: ({ container, history }) =>
      runMiniAgent(
        { instance, config: run.agent, workdir: container.workdir },
        {
          shell: history.shell,
          policy,
          signal,
          beforeTurn: () => staleness.look(),
          onTurn(trajectory) {
            tellPace();
            told(trajectory);
          },
        },
      ),
    pausedSeconds: () => policy.pause.seconds(),
    pace() {
      tellPace();
      return node.paces.of(run.run_id, task.job.rollout_id);
    },
    [Symbol.dispose]: () => owned.dispose(),
  };
}

async function external(task: Task, node: Node): Promise<Player> {
  const { run, instance, signal } = task;
  await takeSession(task, node);
  return {
    play: ({ container, history }) =>
      withSession(task, node, (driver) =>
        runExternalAgent(
          { instance, config: run.agent, workdir: container.workdir },
          { shell: history.shell, driver, signal, onTurn: onTurn(task, node) },
        ),
      ),
    pausedSeconds: () => 0,
    pace: () => null,
    [Symbol.dispose]: () => undefined,
  };
}

const onTurn = (task: Task, node: Node) => (trajectory: Trajectory) => {
  task.trace.trajectory = trajectory;
  task.live.turns(trajectory);
  observeTurn(trajectory, node);
};

function observeTurn(trajectory: Trajectory, { metrics }: Node): void {
  const turn = trajectory.turns.at(-1);
  metrics.turns.inc();
  if (!turn) return;
  metrics.modelSeconds.observe(turn.model_seconds);
  metrics.tokens.inc({ side: 'prompt' }, turn.usage?.prompt_tokens ?? 0);
  metrics.tokens.inc({ side: 'completion' }, turn.usage?.completion_tokens ?? 0);
  for (const command of turn.commands) metrics.commandSeconds.observe(command.seconds);
}

/** The patch of the agents golden, noop and patch: no turn is taken, no sandbox is needed. */
export function given(task: Task): AgentWork {
  const patch = givenPatch(task.run.agent.type, task.instance, task.patch);
  return { end: null, patch, tooLarge: false, agentSeconds: 0, policyPace: null };
}

/** The work of an earlier attempt, whose evaluation was lost: the agent is not asked again. */
export function resumed({ clock, trace }: Task, { trajectory, patch, seconds }: KeptWork): AgentWork {
  clock.resume(seconds);
  trace.trajectory = trajectory;
  return { end: null, patch, tooLarge: false, agentSeconds: 0, policyPace: null };
}
