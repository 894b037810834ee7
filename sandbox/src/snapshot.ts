/**
 * The patch of a rollout: the difference between the tree at the start and now. Execs make the patch with a separate git folder of the
 * farm, so that changes to the repository or the shell have no influence.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { BUILD_OUTPUTS, type InstanceEnvironment, newId, RolloutFailure } from '@swefarm/shared';
import { type Container, DEFAULT_PATH, type ExecResult } from './runtime.ts';
import { attributeLine, leftAsTheyWere, patchSections, withoutRepositories } from './sections.ts';
import type { Preparation, PreparationResult } from './shell.ts';

const SNAPSHOT = readFileSync(new URL('./snapshot.sh', import.meta.url), 'utf8');
const PRUNE = readFileSync(new URL('./prune.sh', import.meta.url), 'utf8');
const REPLACE = readFileSync(new URL('./replace.sh', import.meta.url), 'utf8');
const HIDE = readFileSync(new URL('./hide.sh', import.meta.url), 'utf8');
/**
 * Arguments: prune.sh, snapshot.sh, workdir, name of the farm's git folder, build outputs, hide.sh, handling of the history, hidden
 * paths. The scripts run in this shell or in a subshell. The output of a script is printed if the script fails.
 */
const PREPARE = `script() { script=$1; shift; eval "$script"; }
try() { output=$(script "$@" 2>&1) || { code=$?; printf '%s' "$output"; exit $code; }; }
[ -z "$8" ] || try "$6" "$3" "$7" "$8"
[ "$7" = replaced ] || try "$1" refs "$3"
script "$2" prepare "$3" "$4" "$5"`;
/** Exit code of snapshot.sh when git shows files that it ignored at the start. */
const SHOWN = 8;
const TIMEOUT_MS = 180_000;
export const MAX_PATCH_BYTES = 10 * 1024 * 1024;
/** Maximum size of new and changed files together. Larger ones are not hashed, because the patch would almost surely be too large. */
const MAX_CHANGED_BYTES = 25 * MAX_PATCH_BYTES;
/** Exit code of hide.sh if a path cannot be hidden. The script runs before untrusted code. */
const HIDING_FAILED = 7;
const ENV = {
  PATH: `${DEFAULT_PATH}:/opt/miniconda3/bin`,
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
  folder: string;
  tree: string;
};

export type TreePreparation = Preparation & {
  /** Returns the snapshot. Throws RolloutFailure `no_worktree`, `setup_failed` or `patch_take`. */
  snapshot(prepared: PreparationResult): Snapshot;
};

export type Concealment = Pick<InstanceEnvironment, 'hidden' | 'history'>;

/**
 * Returns the command line that runs before untrusted code, in the exec that opens the shell. It removes the hidden paths and all
 * references to later history (refs outside HEAD's history, remotes, stashes, reflogs), and records the tree. {@link pruneObjects}
 * removes the objects; {@link replaceHistory} removes a history that is to be replaced.
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
        throw new RolloutFailure('setup_failed', `hiding paths from the agent: ${tailOf(prepared)}`);
      if (prepared.exitCode !== 0 || !/^[0-9a-f]{40,64}$/.test(tree)) throw refused(prepared, workdir);
      return { workdir, folder, tree };
    },
  };
}

/**
 * Returns the difference to the snapshot as a patch for `git apply`: valid UTF-8, binary where necessary, renames as deletion and
 * addition; without files that git ignored at the start and without other repositories. Throws RolloutFailure `patch_take`.
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
    // No index entry has this object id. The script marks the entries of `stdin` with the id, and removes them from the patch.
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
    throw new RolloutFailure(
      'patch_take',
      'the patch is not valid UTF-8 even with its non-text files as binary',
    );
  }
  return { patch: withoutRepositories(second.output), tooLarge: false };
}

/**
 * Removes the objects that are unreachable after {@link prepareTree}, except those of the snapshot. Returns `clean` if there were none.
 * Throws RolloutFailure `no_worktree` or `patch_take`.
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
 * Replaces the history by one commit of the snapshot's tree, before the agent's first command. Throws RolloutFailure
 * `no_worktree` or `patch_take`.
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

/** Returns one attribute line for each file whose part of the patch is not text. The names are in the order of the parts. */
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
