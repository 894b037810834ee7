/** Runs the steps of an instance by one exec, because an exec costs more than most steps. */
import { readFileSync } from 'node:fs';
import { MOST, newId, type Step } from '@swefarm/shared';
import type { Container, ExecResult } from './runtime.ts';

const STEPS = readFileSync(new URL('./steps.sh', import.meta.url), 'utf8');
const OUTPUT_BYTES = 64 * 1024;
const MARGIN_MS = 15_000;

/** `how`: the exit code, or that the step timed out. `output`: head and tail of the steps' output. */
export type StepFailure = { step: string; how: string; output: string };

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
