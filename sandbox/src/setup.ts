/** Runs the steps of an instance in its sandboxes, by one exec, because an exec costs more than most steps. */
import { readFileSync } from 'node:fs';
import { type InstanceEnvironment, MOST, newId, RolloutFailure, type Step } from '@swefarm/shared';
import type { Container, ExecResult } from './runtime.ts';

const STEPS = readFileSync(new URL('./steps.sh', import.meta.url), 'utf8');
const OUTPUT_BYTES = 64 * 1024;
const MARGIN_MS = 15_000;
const SHOWN = 240;

/** `how`: the exit code, or that the step timed out. `output`: head and tail of the steps' output. */
type StepFailure = { step: string; how: string; output: string };

/**
 * Runs the steps in order in the working folder, with the environments of the image and the container, up to the first failed step
 * without `may_fail`. Returns that failure; null if there is none. Throws errors of the runtime.
 */
export async function runSteps(
  container: Container,
  steps: readonly Step[],
  signal: AbortSignal,
): Promise<StepFailure | null> {
  if (steps.length === 0) return null;
  const mark = `swefarm-${newId()}`;
  const seconds = steps.map(({ timeout }) => Math.ceil(timeout));
  const parts = steps.flatMap(({ may_fail, script }, at) => [
    String(seconds[at]),
    may_fail ? 'may' : 'must',
    script.replaceAll('\0', ''),
  ]);
  const result = await container.exec(['/bin/bash', '-c', STEPS, 'swefarm', mark], {
    cwd: container.workdir,
    stdin: Buffer.from(parts.map((part) => `${part}\0`).join('')),
    timeoutMs: Math.min(
      MOST.seconds * 1000,
      seconds.reduce((sum, one) => sum + one * 1000, MARGIN_MS),
    ),
    maxOutputBytes: OUTPUT_BYTES,
    signal,
  });
  return result.exitCode === 0 ? null : failureIn(result, mark, steps);
}

function failureIn(
  { exitCode, timedOut, output }: ExecResult,
  mark: string,
  steps: readonly Step[],
): StepFailure {
  const text = output.toString('utf8');
  const [line = '', index, code] = new RegExp(`\\n${mark} (\\d+) (\\w+)\\n$`).exec(text) ?? [];
  const printed = text.slice(0, text.length - line.length).trimEnd();
  const step = steps[Number(index ?? Number.NaN)];
  if (step) {
    const how = code === 'late' ? `did not end in ${step.timeout} s` : `ended with exit code ${code}`;
    return { step: step.name, how, output: printed };
  }
  // No step is named: the time limit, or a step itself, ended the script that runs the steps.
  const how = timedOut ? 'did not end' : `ended with exit code ${exitCode}`;
  return { step: steps.map(({ name }) => name).join(', or '), how, output: printed };
}

/**
 * Runs the setup steps of the container's role. Throws RolloutFailure `setup_failed` if a required step fails or the setup exceeds the
 * container's own limits, `sandbox_lost` if the container ended for another reason, and errors of the runtime.
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

/** Runs steps whose failure no patch can cause. Throws the errors of {@link setUp}. */
export async function requireSteps(
  container: Container,
  part: 'setup' | 'before',
  steps: readonly Step[],
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
