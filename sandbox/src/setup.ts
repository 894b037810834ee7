/** Runs the setup steps of an instance in the agent's sandbox and in the sandbox of the evaluation. */
import { type InstanceEnvironment, RolloutFailure, type Step } from '@swefarm/shared';
import type { Container } from './runtime.ts';
import { runSteps, type StepFailure } from './steps.ts';

const SHOWN = 240;

/**
 * Runs the setup steps of the container's role. Throws RolloutFailure `setup_failed` if a required step fails or the setup exceeds the
 * container's own limits, and errors of the runtime.
 */
export async function setUp(
  container: Container,
  environment: Pick<InstanceEnvironment, 'setup' | 'activate'> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { role } = container.spec;
  const steps: Step[] = environment?.setup.filter(({ roles }) => roles.includes(role)) ?? [];
  // The shell ignores a failed activation, so the activation is checked here.
  if (role === 'agent' && environment?.activate) steps.push({ ...ACTIVATION, script: environment.activate });
  await requireSteps(container, 'setup', steps, signal);
}

const ACTIVATION = { name: 'activate', may_fail: false, timeout: 60 };

/** Runs steps that no patch can make fail. Throws the errors of {@link setUp}. */
export async function requireSteps(
  container: Container,
  part: 'setup' | 'before',
  steps: Parameters<typeof runSteps>[1],
  signal: AbortSignal,
): Promise<void> {
  let failure: StepFailure | null;
  try {
    failure = await runSteps(container, steps, signal);
  } catch (error) {
    signal.throwIfAborted();
    if ((await container.state().catch(() => null)) !== 'own_limit') throw error;
    throw new RolloutFailure('setup_failed', `${part} in the ${container.spec.role} sandbox: ${KILLED}`, {
      cause: error,
    });
  }
  if (!failure) return;
  const state = await container.state();
  if (state === 'exited' || state === 'killed' || state === 'gone')
    throw new RolloutFailure('sandbox_lost', `the container is ${state} after its ${part}`);
  const how = state === 'own_limit' ? KILLED : failure.how;
  throw new RolloutFailure('setup_failed', describeStep(part, container.spec.role, { ...failure, how }));
}

const KILLED = 'it was killed by its own limit';

/** Returns one line: the step, how it ended, and the tail of its output. */
export function describeStep(part: string, role: string, { step, how, output }: StepFailure): string {
  const tail = output.slice(-SHOWN).trim().replace(/\s+/g, ' ');
  return `${part} step "${step}" in the ${role} sandbox ${how}${tail === '' ? '' : `: ${tail}`}`;
}
