/** The containers of one attempt: the agent's, and the specification of those for the evaluation. */
import { beyondCeiling, describeExcess, errorMessage, RolloutFailure } from '@swefarm/shared';
import { isCausedByCode, type Suspect } from '../sandbox/attribution.ts';
import { SandboxKilledError, type Shell } from '../sandbox/command.ts';
import { removeHistory } from '../sandbox/history.ts';
import type { Container, ContainerSpec, ReadyImage } from '../sandbox/runtime.ts';
import { setUp } from '../sandbox/setup.ts';
import { openPreparedShell } from '../sandbox/shell.ts';
import { prepareTree, type Snapshot } from '../sandbox/snapshot.ts';
import type { AttemptServices } from './services.ts';
import type { Task } from './task.ts';

/** The container an agent works in. `suspect` finds out what its commands broke. */
export type AgentSandbox = AsyncDisposable & {
  container: Container;
  snapshot: Snapshot;
  history: ReturnType<typeof removeHistory>;
  suspect: Suspect;
};

/** A container with a snapshot of its tree and a shell; unreachable git objects are removed while the model thinks. The caller disposes of it without waiting for the removal. */
export async function startSandbox(
  task: Task,
  services: AttemptServices,
  image: ReadyImage,
): Promise<AgentSandbox> {
  const { run, instance, signal } = task;
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(
    await services.runtime.start(containerSpec(task, services, image, 'agent'), signal),
  );
  await setUpFor(container, task);
  const environment = instance.environment;
  const tree = prepareTree(container.workdir, environment);
  const { shell, prepared } = await openPreparedShell(
    container,
    {
      workdir: container.workdir,
      activate: environment?.activate ?? run.sandbox.activate,
      env: {},
      log: task.log,
      signal,
    },
    tree,
  );
  stack.use(shell);
  const snapshot = tree.snapshot(prepared);
  const known = { digest: image.digest, clean: services.cleanImages, history: environment?.history };
  const suspect: Suspect = {
    container,
    runtime: services.runtime,
    fresh: () => startBare(task, services, image),
    diskBytes: run.sandbox.disk_bytes,
    signal,
  };
  const history = removeHistory(container, snapshot, namingOwnDoing(shell, suspect), known, signal);
  const owned = stack.move();
  const dispose = (): Promise<void> =>
    services.removals.remove({ [Symbol.asyncDispose]: () => owned.disposeAsync() });
  return { container, snapshot, history, suspect, [Symbol.asyncDispose]: dispose };
}

/** A shell whose errors state when the agent's own commands broke the sandbox. */
function namingOwnDoing(shell: Shell, suspect: Suspect): Shell {
  return {
    async run(command, options) {
      try {
        return await shell.run(command, options);
      } catch (error) {
        if (!(await isCausedByCode(error, suspect))) throw error;
        throw new SandboxKilledError(`a command broke the sandbox: ${errorMessage(error)}`);
      }
    },
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  };
}

/** A container for the evaluation, set up as the instance's record says. Throws RolloutFailure `setup_failed`, and as the runtime does. */
export async function startClean(
  task: Task,
  services: AttemptServices,
  image: ReadyImage,
): Promise<Container> {
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(await startBare(task, services, image));
  await setUpFor(container, task);
  stack.move();
  return container;
}

const setUpFor = (container: Container, { instance, signal }: Task): Promise<void> =>
  setUp(container, instance.environment, signal);

/** The same in which nothing has run. */
export const startBare = (task: Task, services: AttemptServices, image: ReadyImage): Promise<Container> =>
  services.runtime.start(containerSpec(task, services, image, 'evaluation'), task.signal);

export function containerSpec(
  task: Task,
  services: AttemptServices,
  image: ReadyImage,
  role: ContainerSpec['role'],
): ContainerSpec {
  const { run, job, instance } = task;
  const evaluation = role === 'evaluation';
  return {
    image,
    role,
    owner: { ...services.owner, rollout_id: job.rollout_id, attempt: task.attempt },
    network: networkOf(task, role),
    limits: limitsOf(task, services),
    workdir: workdirOf(task),
    env: { ...instance.environment?.env, ...(evaluation ? run.evaluation.envelope : {}) },
  };
}

/** The repository in the image. */
const workdirOf = ({ run, instance }: Pick<Task, 'run' | 'instance'>): string =>
  instance.environment?.workdir ?? run.sandbox.workdir;

/** What the run gives, and more where the harness of the instance's family gives more; of memory, no more than the node has. */
export function limitsOf(
  { run: { sandbox }, instance: { environment } }: Pick<Task, 'run' | 'instance'>,
  { ceilings, nodeMemoryBytes }: Pick<AttemptServices, 'ceilings' | 'nodeMemoryBytes'>,
): ContainerSpec['limits'] {
  const wanted = Math.min(environment?.memory_bytes ?? 0, nodeMemoryBytes);
  return {
    cpus: Math.max(sandbox.cpus, environment?.cpus ?? 0),
    memoryBytes: Math.max(sandbox.memory_bytes, wanted),
    pids: sandbox.pids,
    // A run without a limit of its own gets the operator's limit.
    diskBytes: sandbox.disk_bytes ?? ceilings.max_disk_bytes,
  };
}

/** Why the sandboxes of an instance have less memory here than its harness gives them; null: they have as much. */
export function shortMemory(task: Pick<Task, 'run' | 'instance'>, services: AttemptServices): string | null {
  const asked = task.instance.environment?.memory_bytes ?? 0;
  const given = limitsOf(task, services).memoryBytes;
  if (given >= asked) return null;
  const gib = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
  const node = gib(services.nodeMemoryBytes);
  return `${gib(given)} here, ${gib(asked)} by its harness; node_memory_bytes is ${node}`;
}

/** Throws RolloutFailure `sandbox_refused`, the run's fault, when it requests more than a ceiling of this worker; nothing has started then. */
export function refuseExcess(
  { run, instance }: Pick<Task, 'run' | 'instance'>,
  { ceilings, identity, runtime }: Pick<AttemptServices, 'ceilings' | 'identity' | 'runtime'>,
): void {
  // It would change this very machine.
  if (!runtime.isolates && instance.environment)
    throw new RolloutFailure(
      'sandbox_refused',
      `${instance.instance_id} brings an environment of its own, which the dry run on ${runtime.name} cannot give`,
    );
  const excess = beyondCeiling(run, ceilings, instance);
  if (excess === null) return;
  throw new RolloutFailure(
    'sandbox_refused',
    describeExcess(excess, `worker ${identity.worker} on ${identity.node}`),
  );
}

export function networkOf(
  { run, instance }: Pick<Task, 'run' | 'instance'>,
  role: ContainerSpec['role'],
): ContainerSpec['network'] {
  if (role === 'agent') return run.sandbox.agent_network;
  return instance.needs_egress ? 'egress' : run.sandbox.eval_network;
}
