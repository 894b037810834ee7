/**
 * The patch of a rollout: the difference between the tree at the start and now. It is taken by plain exec with a git
 * folder of the farm's own, so that nothing the agent did to its repository or its shell can change it.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { type InstanceEnvironment, newId, RolloutFailure } from '@swefarm/shared';
import { BUILD_OUTPUTS } from './buildoutputs.ts';
import type { Container, ExecResult } from './runtime.ts';
import { attributeLine, patchSections, withoutRepositories } from './sections.ts';
import type { Preparation, PreparationResult } from './shell.ts';
import { leftAsTheyWere } from './shownfiles.ts';

const SNAPSHOT = readFileSync(new URL('./snapshot.sh', import.meta.url), 'utf8');
const PRUNE = readFileSync(new URL('./prune.sh', import.meta.url), 'utf8');
const REPLACE = readFileSync(new URL('./replace.sh', import.meta.url), 'utf8');
const HIDE = readFileSync(new URL('./hide.sh', import.meta.url), 'utf8');
/**
 * Arguments: prune.sh, snapshot.sh, workdir, name of the farm's git folder, build outputs, hide.sh, what becomes of the history, hidden
 * paths. The scripts run in this shell or a copy of it; what a script prints is printed when it fails.
 */
const PREPARE = `script() { script=$1; shift; eval "$script"; }
try() { said=$(script "$@" 2>&1) || { code=$?; printf '%s' "$said"; exit $code; }; }
[ -z "$8" ] || try "$6" "$3" "$7" "$8"
[ "$7" = replaced ] || try "$1" refs "$3"
script "$2" prepare "$3" "$4" "$5"`;
/** Exit code of the script where files are shown that were ignored at the start. */
const SHOWN = 8;
const TIMEOUT_MS = 180_000;
/** A larger patch is the agent's fault and has its own row in the reward table. */
export const MAX_PATCH_BYTES = 10 * 1024 * 1024;
/** When new and changed files together are larger than this they are not even hashed: their patch would almost surely be too large. */
const MAX_CHANGED_BYTES = 25 * MAX_PATCH_BYTES;
/** The exit code of hide.sh; code of the agent cannot have run yet. */
const HIDING_FAILED = 7;
const ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/miniconda3/bin',
  HOME: '/nonexistent',
  XDG_CONFIG_HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_OPTIONAL_LOCKS: '0',
};

export type Snapshot = {
  workdir: string;
  /** Name of the farm's git folder beside the work tree. */
  folder: string;
  /** Id of the tree at start. */
  tree: string;
};

/** What is done to a repository before the agent's first command. */
export type TreePreparation = Preparation & {
  /** The snapshot it took. Throws RolloutFailure `no_worktree`, `setup_failed` or `patch_take`. */
  snapshot(prepared: PreparationResult): Snapshot;
};

/** What an instance's record hides of its sandbox. */
export type Concealment = Pick<InstanceEnvironment, 'hidden' | 'history'>;

/**
 * One command line for the exec that opens the shell, before any code of the model can have run. It removes the hidden paths, then what
 * points to the future (refs outside HEAD's history, remotes, stashes, reflogs; not yet the objects they reached), and records the
 * tree as it is. A history that is to be replaced stays until {@link replaceHistory}.
 */
export function prepareTree(
  workdir: string,
  { hidden, history }: Concealment = { hidden: [], history: 'pruned' },
): TreePreparation {
  const folder = `.swefarm-${newId()}`;
  const env = Object.entries(ENV).map(([name, value]) => `${name}=${value}`);
  const scripts = [PREPARE, 'swefarm', PRUNE, SNAPSHOT, workdir, folder, BUILD_OUTPUTS.join('\n')];
  scripts.push(HIDE, history, hidden.join('\n'));
  return {
    argv: ['/usr/bin/env', '-i', ...env, '/bin/sh', '-c', ...scripts],
    timeoutMs: TIMEOUT_MS,
    snapshot(prepared) {
      const tree = prepared.output.toString('latin1').trim();
      if (prepared.exitCode === HIDING_FAILED)
        throw new RolloutFailure('setup_failed', `what the agent may not see: ${tailOf(prepared)}`);
      if (prepared.exitCode !== 0 || !/^[0-9a-f]{40,64}$/.test(tree)) throw refused(prepared, workdir);
      return { workdir, folder, tree };
    },
  };
}

/**
 * The difference to the snapshot as a patch for `git apply`: valid UTF-8, binary where it must be, renames as deletion and
 * addition; without what git ignored at the start and without other repositories in the tree. Throws RolloutFailure `patch_take`.
 */
export async function takePatch(
  container: Container,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<{ patch: Buffer; tooLarge: boolean }> {
  const { workdir, folder, tree } = snapshot;
  const tooLarge = { patch: Buffer.alloc(0), tooLarge: true };
  const args = ['take', workdir, folder, tree, String(MAX_CHANGED_BYTES)];
  let first = await git(container, SNAPSHOT, args, { signal });
  if (first.exitCode === SHOWN && !first.truncated) {
    // An object that no index entry needs: those entries go before the difference is taken.
    const object = '1'.repeat(tree.length);
    const stdin = leftAsTheyWere(first.output);
    first = await git(container, SNAPSHOT, [...args, object], { stdin, signal });
  }
  if (first.exitCode === 6 || ((first.exitCode === 0 || first.exitCode === SHOWN) && first.truncated))
    return tooLarge;
  if (first.exitCode !== 0) throw refused(first, workdir);
  if (isText(first.output)) return { patch: withoutRepositories(first.output), tooLarge: false };

  const listed = await git(container, SNAPSHOT, ['names', workdir, folder, tree], { signal });
  if (listed.exitCode !== 0) throw refused(listed, workdir);
  const attributes = binaryAttributes(first.output, listed.output);
  const second = await git(container, SNAPSHOT, ['diff', workdir, folder, tree], {
    stdin: attributes,
    signal,
  });
  if (second.exitCode !== 0) throw refused(second, workdir);
  if (second.truncated) return tooLarge;
  if (!isText(second.output)) {
    throw new RolloutFailure('patch_take', 'the patch is not valid UTF-8 even with its odd files as binary');
  }
  return { patch: withoutRepositories(second.output), tooLarge: false };
}

/**
 * Removes the objects that are unreachable after {@link prepareTree}; `clean` when there were none. What the snapshot
 * needs stays. Throws RolloutFailure `no_worktree` or `patch_take`.
 */
export async function pruneObjects(
  container: Container,
  { workdir, folder, tree }: Snapshot,
  signal: AbortSignal,
): Promise<'clean' | 'pruned'> {
  const isolated = container.privatePids ? 'yes' : 'no';
  const result = await git(container, PRUNE, ['objects', workdir, folder, tree, isolated], { signal });
  if (result.exitCode !== 0) throw refused(result, workdir);
  return result.output.toString('latin1').trim() === 'clean' ? 'clean' : 'pruned';
}

/**
 * Gives the repository one commit of the snapshot's tree in place of its history, before the agent's first command. Throws
 * RolloutFailure `no_worktree` or `patch_take`.
 */
export async function replaceHistory(
  container: Container,
  { workdir, folder, tree }: Snapshot,
  signal: AbortSignal,
): Promise<void> {
  const result = await git(container, REPLACE, [workdir, folder, tree], { signal });
  if (result.exitCode !== 0) throw refused(result, workdir);
}

const isText = (patch: Buffer): boolean => isUtf8(patch) && !patch.includes(0);

/** One line for each file whose part of the patch is not text. The names come in the order of the parts. */
function binaryAttributes(patch: Buffer, names: Buffer): Buffer {
  const paths: Buffer[] = [];
  for (let at = 0, end = names.indexOf(0); end >= 0; at = end + 1, end = names.indexOf(0, at)) {
    paths.push(names.subarray(at, end));
  }
  const sections = patchSections(patch);
  if (sections.length !== paths.length) {
    throw new RolloutFailure('patch_take', `${sections.length} parts of a patch for ${paths.length} files`);
  }
  const lines = paths.filter((_, i) => !isText(sections[i] ?? patch)).map(attributeLine);
  return Buffer.from(lines.join(''));
}

function git(
  container: Container,
  script: string,
  args: readonly string[],
  options: { stdin?: Buffer; signal: AbortSignal },
): Promise<ExecResult> {
  return container.exec(['/bin/sh', '-c', script, 'swefarm', ...args], {
    env: ENV,
    cwd: '/',
    timeoutMs: TIMEOUT_MS,
    maxOutputBytes: MAX_PATCH_BYTES,
    ...(options.stdin ? { stdin: options.stdin } : {}),
    signal: options.signal,
  });
}

function refused(
  result: Pick<ExecResult, 'exitCode' | 'output'> & { timedOut?: boolean },
  workdir: string,
): RolloutFailure {
  if (result.timedOut) {
    return new RolloutFailure('patch_take', `git took over ${TIMEOUT_MS / 1000} s in ${workdir}`);
  }
  if (result.exitCode === 3)
    return new RolloutFailure('no_worktree', `${workdir} is no git work tree in this image`);
  if (result.exitCode === 4) return new RolloutFailure('no_worktree', 'the image has no git');
  const why = `git failed in ${workdir} (exit ${result.exitCode}): ${tailOf(result)}`;
  return new RolloutFailure('patch_take', why);
}

const tailOf = ({ output }: Pick<ExecResult, 'output'>): string =>
  output.subarray(-300).toString('utf8').trim();
