/** Checks whether the sandboxes of a runtime start on this node. */
import { errorMessage } from '@swefarm/shared';
import type { Container, RuntimeCheck } from '../runtime.ts';
import { explainNamespaces, limitsOf, warnings } from './host.ts';
import type { RuntimeSetup } from './setup.ts';

export type Trial = {
  /** Known problems. If there is one, no container is started. */
  problems: readonly string[];
  /** Returns the version. Rejects with a message for the user. */
  version(): Promise<string>;
  start(): Promise<Container>;
  /** The command that the container must run. */
  argv: readonly string[];
  /** The cause and the remedy for the message of a failed start; null: unknown. */
  explain(message: string): string | null;
  /** Further warnings for a usable runtime. */
  hints?(): Promise<string[]>;
};

/** Checks the runtime by a trial container. Throws the signal's reason. */
export async function checkRuntime(
  { cgroups, root }: RuntimeSetup,
  trial: Trial,
  signal: AbortSignal,
): Promise<RuntimeCheck> {
  const limits = limitsOf(cgroups, root);
  const problems = [...trial.problems];
  let version: string | null = null;
  if (problems.length === 0) {
    version = await trial.version().catch((error: unknown) => {
      problems.push(errorMessage(error));
      return null;
    });
  }
  if (problems.length === 0) {
    const problem = await tryContainer(trial, signal);
    const unknown = `a trial sandbox did not start: ${problem}`;
    if (problem !== null)
      problems.push(explainNamespaces(problem, root) ?? trial.explain(problem) ?? unknown);
  }
  const usable = problems.length === 0;
  if (usable) problems.push(...warnings(limits, root), ...((await trial.hints?.()) ?? []));
  return { usable, version, limits, problems };
}

/** Starts a container and runs one command; returns the problem, or null. */
async function tryContainer({ start, argv }: Trial, signal: AbortSignal): Promise<string | null> {
  try {
    await using container = await start();
    const result = await container.exec(argv, { timeoutMs: 10_000, maxOutputBytes: 1_000, signal });
    // A timeout may come from a node that is busy at the moment.
    if (result.exitCode === 0 || result.timedOut) return null;
    return (
      result.output.toString().trim() || `the command ended with exit code ${result.exitCode} without output`
    );
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
}
