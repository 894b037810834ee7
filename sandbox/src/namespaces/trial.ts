/** Checks whether the sandboxes of a runtime start on this node, and how their resources are limited. */
import { errorMessage } from '@swefarm/shared';
import type { Container, RuntimeCheck } from '../runtime.ts';
import type { Cgroups } from './cgroups.ts';
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

/** Returns the cause and the remedy if namespaces or mounts are not allowed; null for another cause. */
function explainNamespaces(message: string, root: boolean): string | null {
  if (!root && /Operation not permitted|uid_map|user namespace|unshare failed/i.test(message)) {
    return `user namespaces are not allowed here (${message}): sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0, or run as root`;
  }
  if (root && /Operation not permitted|Permission denied/i.test(message)) {
    return `mounts are not allowed here (${message}): inside a container the worker needs CAP_SYS_ADMIN and an unconfined AppArmor and seccomp profile`;
  }
  return null;
}

function limitsOf(cgroups: Cgroups | null, root: boolean): RuntimeCheck['limits'] {
  const has = (name: 'cpu' | 'memory' | 'pids') => cgroups?.controllers.has(name) ?? false;
  return {
    cpu: has('cpu') ? 'enforced' : 'none',
    memory: has('memory') ? 'enforced' : 'watched',
    pids: has('pids') || !root ? 'enforced' : 'watched',
    disk: 'watched',
  };
}

/** Names the limits that the kernel does not enforce, with the remedy. */
function warnings(limits: RuntimeCheck['limits'], root: boolean): string[] {
  const weak = (['cpu', 'memory', 'pids'] as const).filter((name) => limits[name] !== 'enforced');
  if (weak.length === 0) return [];
  const remedy = root
    ? 'mount a writable /sys/fs/cgroup'
    : 'have a group delegated to this user (systemd: Delegate=yes; SLURM: a job step with cgroup delegation)';
  return [
    `the kernel does not limit ${weak.join(', ')} here (what is "watched" is measured once a second): ${remedy}`,
  ];
}
