/** Starts the containers of one attempt: for the agent, for the evaluation, and for a program of the dataset that reads outcomes. */
import {
  type Container,
  type ContainerSpec,
  isCausedByCode,
  type Mount,
  type PreparedSandbox,
  prepareSandbox,
  type ReadyImage,
  SandboxKilledError,
  type Shell,
  type Suspect,
  setUp,
} from '@swefarm/sandbox';
import {
  beyondCeiling,
  describeExcess,
  errorMessage,
  type InstancePlan,
  RolloutFailure,
} from '@swefarm/shared';
import { PROGRAM_LIMITS } from '../evaluation/program.ts';
import { prepareTaskSandbox } from '../harbor/sandbox.ts';
import { asUser, runOfVerifier, userOf } from '../harbor/settings.ts';
import { startTask, startVerifier } from '../harbor/start.ts';
import type { Task } from './context.ts';

/** What the start of a sandbox needs of a rollout and of its worker. */
export type SandboxTask = Pick<Task, 'run' | 'instance' | 'signal' | 'log' | 'attempt'> & {
  job: Pick<Task['job'], 'rollout_id'>;
  services: Pick<
    Task['services'],
    'runtime' | 'cleanPlans' | 'removals' | 'owner' | 'config' | 'nodeMemoryBytes'
  >;
};

/** Container in which an agent works. `suspect` tests whether the agent's commands broke the container. */
export type AgentSandbox = PreparedSandbox & { suspect: Suspect };

/**
 * Starts a container with a snapshot of its tree and a shell. Unreachable git objects are removed while the model writes its first answer.
 * Disposing the sandbox does not wait for the removal of the container.
 */
export async function startSandbox(
  task: SandboxTask,
  image: ReadyImage,
  mounts: readonly Mount[] = [],
): Promise<AgentSandbox> {
  const { run, signal, log } = task;
  const { environment } = task.instance;
  const { runtime, cleanPlans, removals } = task.services;
  const spec = {
    ...containerSpec(task, image, 'agent'),
    limits: agentLimits(task),
    ...(mounts.length > 0 ? { mounts } : {}),
  };
  const { harbor } = task.instance;
  const activate = environment?.activate ?? run.sandbox.activate;
  const ready = harbor
    ? await prepareTaskSandbox(spec, harbor, { runtime, log, signal })
    : await prepareSandbox({ spec, environment, activate }, { runtime, cleanPlans, log, signal });
  const { container, pruned } = ready;
  const suspect: Suspect = {
    container,
    runtime,
    fresh: () => startBare(task, image),
    diskBytes: run.sandbox.disk_bytes,
    signal,
  };
  const shell = agentShell(ready.shell, pruned, suspect);
  const own = harbor ? { container: asUser(container, userOf(harbor.agent, image)) } : {};
  return { ...ready, ...own, shell, suspect, [Symbol.asyncDispose]: () => removals.remove(ready) };
}

/** Returns a shell whose commands wait for `pruned`, and throw SandboxKilledError when the agent's own commands broke the sandbox. */
function agentShell(shell: Shell, pruned: Promise<void>, suspect: Suspect): Shell {
  return {
    async run(command, options) {
      await pruned;
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

/** Starts a container for the evaluation and runs the instance's setup. Throws RolloutFailure `setup_failed`, and errors of the runtime. */
export async function startClean(task: Task, image: ReadyImage): Promise<Container> {
  await using stack = new AsyncDisposableStack();
  const container: Container = stack.use(await startBare(task, image));
  await setUp(container, task.instance.environment, task.signal);
  const { harbor } = task.instance;
  if (harbor) await (harbor.verifier.separate ? startVerifier : startTask)(container, harbor, task.signal);
  stack.move();
  return container;
}

/** Starts a container of a Harbor task in which its solution runs instead of an agent. Throws the errors of {@link startClean}. */
export async function startWork(task: Task, image: ReadyImage): Promise<Container> {
  await using stack = new AsyncDisposableStack();
  const spec = containerSpec(task, image, 'agent');
  const container: Container = stack.use(await task.services.runtime.start(spec, task.signal));
  if (task.instance.harbor) await startTask(container, task.instance.harbor, task.signal);
  stack.move();
  return container;
}

/** Starts a container for the evaluation without setup. */
export const startBare = (task: SandboxTask, image: ReadyImage): Promise<Container> =>
  task.services.runtime.start(containerSpec(task, image, 'evaluation'), task.signal);

function containerSpec(task: SandboxTask, image: ReadyImage, role: ContainerSpec['role']): ContainerSpec {
  const { instance } = task;
  const { environment, harbor } = instance;
  const run = role === 'agent' ? task.run : runOfVerifier(task.run, instance);
  const { separate } = role === 'agent' ? {} : (harbor?.verifier ?? {});
  const own = separate ?? environment;
  return {
    image,
    role,
    // Process 1 of a Harbor task must be able to kill the processes of every user.
    ...(harbor ? { user: 'root' as const } : {}),
    owner: ownerOf(task),
    network: networkOf(task, role),
    limits: limitsOf({ ...task, run }),
    workdir: own?.workdir ?? (harbor ? (image.workdir ?? '/') : run.sandbox.workdir),
    env: { ...own?.env, ...(role === 'evaluation' ? run.evaluation.envelope : {}) },
  };
}

/** Returns the labels of the task's containers. */
const ownerOf = ({ services, job, attempt }: SandboxTask): ContainerSpec['owner'] => ({
  ...services.owner,
  rollout_id: job.rollout_id,
  attempt,
});

/** Returns the limits of the run, raised to those of the instance's environment. Memory is raised at most to the memory of the node. */
export function limitsOf({ run, instance, services }: SandboxTask): ContainerSpec['limits'] {
  const { sandbox } = run;
  const { environment } = instance;
  const { config, nodeMemoryBytes } = services;
  const memoryBytes = Math.min(environment?.memory_bytes ?? 0, nodeMemoryBytes);
  return {
    cpus: Math.max(sandbox.cpus, environment?.cpus ?? 0),
    memoryBytes: Math.max(sandbox.memory_bytes, memoryBytes),
    pids: sandbox.pids,
    diskBytes: sandbox.disk_bytes ?? config.max_disk_bytes,
  };
}

const MIB = 1024 ** 2;

/** Returns the limits of the agent's sandbox: the processes of an agent that comes as a program run beside its commands. */
export function agentLimits(task: SandboxTask): ContainerSpec['limits'] {
  const limits = limitsOf(task);
  const needs = task.run.agent.card?.needs;
  if (!needs) return limits;
  const memoryBytes = limits.memoryBytes + needs.memory_mib * MIB;
  return { ...limits, memoryBytes, pids: limits.pids + needs.pids };
}

/** Returns by how much sandboxes on this node have less memory than the harness gives the instance; null: they have as much. */
export function shortMemory(task: Task): string | null {
  const harness = task.instance.environment?.memory_bytes ?? 0;
  const here = limitsOf(task).memoryBytes;
  if (here >= harness) return null;
  const gib = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
  const node = gib(task.services.nodeMemoryBytes);
  return `${gib(here)} here, ${gib(harness)} by its harness; node_memory_bytes is ${node}`;
}

/** Throws RolloutFailure `sandbox_refused` when the run exceeds a ceiling of this worker or its instance needs a runtime that isolates. */
export function refuseExcess({ run, instance, services }: Task): void {
  const { config, runtime } = services;
  // Without isolation, the setup steps of the instance would change this machine.
  if (!runtime.isolates && instance.environment)
    throw new RolloutFailure(
      'sandbox_refused',
      `${instance.instance_id} needs an environment of its own, which the dry run on ${runtime.name} does not provide`,
    );
  const excess =
    beyondCeiling(run, config, instance) ?? beyondCeiling(runOfVerifier(run, instance), config, instance);
  const where = whereOf(services);
  if (excess !== null) throw new RolloutFailure('sandbox_refused', describeExcess(excess, where));
}

export function networkOf(
  { run, instance }: Pick<Task, 'run' | 'instance'>,
  role: ContainerSpec['role'],
): ContainerSpec['network'] {
  if (role === 'agent') return run.sandbox.agent_network;
  return instance.needs_egress ? 'egress' : run.sandbox.eval_network;
}

const whereOf = ({ identity }: Task['services']): string => `worker ${identity.worker} on ${identity.node}`;

/** Throws RolloutFailure `no_parser_image` or `sandbox_refused` when this worker cannot run the plan's program. */
export function requireProgram({ outcomes }: InstancePlan, { services }: Task): void {
  if (outcomes.from !== 'program') return;
  const { runtime, config } = services;
  const where = whereOf(services);
  if (!runtime.isolates) {
    const why = 'outcomes are read by a program of the dataset, which needs a runtime that isolates';
    throw new RolloutFailure('sandbox_refused', `${where}: ${why}, and this is ${runtime.name}`);
  }
  if (outcomes.image === 'tools' && config.parser_image === null)
    throw new RolloutFailure(
      'no_parser_image',
      `${where} has no parser_image: set parser_image (SWEFARM_PARSER_IMAGE) to an image with python3; see docs/running.md`,
    );
}

/** Starts a new container with small limits, without network. `instance`: the image to run; null: parser_image. Throws runtime errors. */
export async function startProgram(task: Task, instance: ReadyImage | null): Promise<Container> {
  const image = instance ?? (await toolsImage(task));
  const own = limitsOf(task);
  const limits = {
    cpus: Math.min(own.cpus, PROGRAM_LIMITS.cpus),
    memoryBytes: Math.min(own.memoryBytes, PROGRAM_LIMITS.memoryBytes),
    pids: Math.min(own.pids, PROGRAM_LIMITS.pids),
    diskBytes: own.diskBytes,
  };
  const owner = ownerOf(task);
  return task.services.runtime.start(
    { image, role: 'evaluation', owner, network: 'none', limits, workdir: '/', env: {} },
    task.signal,
  );
}

async function toolsImage({ services, signal }: Task): Promise<ReadyImage> {
  const name = services.config.parser_image ?? '';
  try {
    return await services.runtime.ensureImage(name, signal);
  } catch (error) {
    const ofImage =
      error instanceof RolloutFailure &&
      (error.failureClass === 'image_not_found' || error.failureClass === 'image_pull');
    if (!ofImage) throw error;
    throw new RolloutFailure(error.failureClass, `parser_image ${name}: ${error.message}`, { cause: error });
  }
}
