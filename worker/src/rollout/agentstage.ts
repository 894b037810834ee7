/** Obtains the patch of a rollout: an agent works in a sandbox, or the patch is given. */
import {
  type DiskWatch,
  diskIsFull,
  hasFilledDisk,
  isCausedByCode,
  lossOr,
  occupiesDisk,
  type PreparedContainer,
  type ReadyImage,
  takePatch,
  watchDisk,
} from '@swefarm/sandbox';
import {
  type AgentName,
  errorMessage,
  type GivenAgent,
  type HarborTask,
  type Instance,
  isSandboxAgent,
  RolloutFailure,
  type SandboxAgent,
} from '@swefarm/shared';
import type { Permit } from '../admission/admission.ts';
import { ReplayDiffers } from '../agent/replay.ts';
import { collectWork } from '../harbor/collect.ts';
import { type AgentSandbox, startSandbox } from './containers.ts';
import type { AgentWork, ResumableWork, Task } from './context.ts';
import { openInstalled } from './installed.ts';
import { openMini } from './mini.ts';
import type { OpenedAgent } from './openedagent.ts';
import { openExternal } from './session.ts';
import type { Staleness } from './staleness.ts';

type OpenAgent = (task: Task, staleness: Staleness, permit: Permit | null) => Promise<OpenedAgent>;
const OPEN: Record<SandboxAgent, OpenAgent> = {
  mini: openMini,
  installed: openInstalled,
  external: openExternal,
};

/** Image, evaluation container (`clean`) and staleness check of a rollout. */
export type Prepared = { image: ReadyImage; clean: PreparedContainer; staleness: Staleness };

/** Runs the agent in a sandbox, then frees the slot at its policy. If a replay differs, the agent begins anew in another sandbox. */
export async function runAgent(name: SandboxAgent, task: Task, prepared: Prepared): Promise<AgentWork> {
  using permit = task.permit;
  try {
    return await runInSandbox(name, task, prepared, permit);
  } catch (error) {
    if (!(error instanceof ReplayDiffers)) throw error;
    task.services.metrics.replays.inc({ end: 'differed' });
    if (task.run.branch_of) throw new RolloutFailure('branch_differs', error.message);
    task.log.warn({ why: error.message }, 'recorded turns differ in this sandbox: the agent begins anew');
    task.trace.trajectory = null;
    await task.turns.beginAnew(error.turn);
    return await runInSandbox(name, task, prepared, permit);
  }
}

/** Starts `clean` while the agent works, so that the evaluation need not wait for its container. */
async function runInSandbox(
  name: SandboxAgent,
  task: Task,
  { image, clean, staleness }: Prepared,
  permit: Permit | null,
): Promise<AgentWork> {
  const { run, clock } = task;
  using agent = await OPEN[name](task, staleness, permit);
  await using stack = new AsyncDisposableStack();
  const starting = clock.time('sandbox', () => startSandbox(task, image, agent.mounts));
  const sandbox: AgentSandbox = stack.use(await starting);
  const { harbor } = task.instance;
  // Feedback on submits has containers of its own, and the node has room for one beside the agent's.
  if (run.evaluation.enabled && run.agent.max_submits === 1 && !harbor) clean.begin();

  try {
    const work = await workIn(sandbox, agent, task);
    // A shared verifier needs the container of the agent.
    if (harbor && !harbor.verifier.separate) {
      await sandbox.shell[Symbol.asyncDispose]();
      stack.move();
      clean.give(sandbox.suspect.container);
    }
    return work;
  } catch (error) {
    throw await lossOr(error, sandbox.container, 'sandbox_lost');
  }
}

async function workIn(sandbox: AgentSandbox, agent: OpenedAgent, task: Task): Promise<AgentWork> {
  const { run, clock, signal, trace, services } = task;
  const agentClock = () => performance.now() / 1000 - agent.pausedSeconds();
  const from = agentClock();
  using disk = watchDisk(services.runtime, () => occupiesDisk(sandbox.suspect));
  const end = await clock.time('agent', () => agent.work(sandbox));
  const agentSeconds = agentClock() - from;
  const took = { end, agentSeconds, policyPace: agent.policyPace() };
  trace.trajectory = end.trajectory;
  if (task.turns.replay) clock.resume({ agent: agentSeconds });
  clock.set('model', end.model_seconds);
  clock.set('command', end.command_seconds);

  const killed = { ...took, end: { ...end, sandbox_killed: true }, patch: null, tooLarge: false };
  if (end.sandbox_killed || (await hasBrokenDisk(sandbox, disk))) return killed;
  if (run.agent.patch_source === 'submission' && end.submission !== null) {
    return { ...took, patch: end.submission, tooLarge: false };
  }
  await sandbox.pruned;
  const { harbor } = task.instance;
  if (harbor?.verifier.separate && !(await clock.time('patch', () => takeWork(sandbox, harbor, task))))
    return killed;
  const taken = await clock.time('patch', () => patchOf(sandbox, signal));
  // On a full disk git omits from the patch the files that it cannot write.
  if (await hasBrokenDisk(sandbox, disk)) return killed;
  // With a separate verifier, the artifacts are the work. The patch is empty, so that an evaluation that fails can be repeated.
  const none = harbor?.verifier.separate ? '' : null;
  const patch = taken?.patch.toString('utf8') ?? none;
  return { ...took, patch, tooLarge: taken?.tooLarge ?? false };
}

/** Takes the work for the separate verifier of a Harbor task. Returns false if the agent broke the container. */
async function takeWork(
  { suspect }: AgentSandbox,
  task: HarborTask,
  { trace, log, signal }: Task,
): Promise<boolean> {
  const warn = (message: string): void => log.warn(message);
  try {
    trace.collected = await collectWork(suspect.container, task, { signal, warn });
    return true;
  } catch (error) {
    if (!(await isCausedByCode(error, suspect))) throw error;
    warn(`the agent broke its container: ${errorMessage(error)}`);
    return false;
  }
}

/** Returns whether the agent filled the disk. Throws RolloutFailure `node_disk` when another sandbox did. */
async function hasBrokenDisk({ suspect }: AgentSandbox, disk: DiskWatch): Promise<boolean> {
  if (await diskIsFull(suspect.runtime)) {
    if (await hasFilledDisk(suspect)) return true;
    throw new RolloutFailure('node_disk', 'the disk was full when the agent ended');
  }
  if (await disk.wasFull()) throw new RolloutFailure('node_disk', 'the disk was full while the agent worked');
  return false;
}

/** Takes the patch of the agent; null when the agent destroyed git, the snapshot or the tree. */
async function patchOf({ container, snapshot, suspect }: AgentSandbox, signal: AbortSignal) {
  if (!snapshot) return null;
  try {
    return await takePatch(container, snapshot, signal);
  } catch (error) {
    if (await isCausedByCode(error, suspect)) return null;
    throw error;
  }
}

/** The patches of agents without turns. */
const GIVEN: Record<GivenAgent, (instance: Instance, patch: string | null) => string> = {
  golden({ instance_id, patch }) {
    if (patch.trim() === '')
      throw new RolloutFailure('instance_invalid', `${instance_id}: the row withholds its gold patch`);
    return patch;
  },
  noop: () => '',
  patch({ instance_id }, patch) {
    if (patch === null)
      throw new RolloutFailure('instance_invalid', `${instance_id}: no patch came with the job`);
    return patch;
  },
};

/** Returns the patch of an agent without turns. Throws RolloutFailure `instance_invalid` when row or job has no patch for the agent. */
export function givenPatch(name: AgentName, instance: Instance, patch: string | null): string {
  if (isSandboxAgent(name))
    throw new RolloutFailure('bug', `agent ${name} makes its own patch; none is given`);
  return GIVEN[name](instance, patch);
}

export const givenWork = ({ run, instance, patch }: Task): AgentWork =>
  workWithoutAgent(givenPatch(run.agent.type, instance, patch));

/** Returns the work of an earlier attempt that only needs an evaluation. */
export function resumedWork({ clock, trace }: Task, work: ResumableWork) {
  const { trajectory, patch, seconds, agent = null, outputs, collected } = work;
  const { sandbox, agent: agentSeconds, model, command, patch: patchSeconds } = seconds;
  clock.resume({ sandbox, agent: agentSeconds, model, command, patch: patchSeconds });
  Object.assign(trace, { trajectory, agent, outputs, collected });
  return workWithoutAgent(patch);
}

const workWithoutAgent = (patch: string): AgentWork => ({
  end: null,
  patch,
  tooLarge: false,
  agentSeconds: 0,
  policyPace: null,
});
