/** Runs the setup of an example inside its own tree: a whole Debian tree by chroot, or the host's root overlaid with the tree. */
import { chmod, copyFile, lstat, mkdir, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SwefarmError, shellQuoted } from '@swefarm/shared';
import { has, type RunResult, run } from './run.ts';

const ACTIVATE = join(import.meta.dirname, 'activate.sh');

/** `dir`: `path` is a complete root. `host+dir`: `path` has /testbed and /opt/miniconda3, and the host provides the rest. */
export type Tree = { kind: 'dir' | 'host+dir'; path: string };

export type InTreeOptions = {
  /** Folder of the host that the script sees as /setup and must not write to. */
  setup?: string;
  stdin?: string;
  allow?: readonly number[];
  signal: AbortSignal;
};

const CLEAN_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  PIP_NO_INDEX: '1',
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_ROOT_USER_ACTION: 'ignore',
};

const ENVIRONMENT = '/opt/miniconda3/envs/testbed';

/** pip installs itself from its wheel, so neither ensurepip nor Debian's python3-venv is needed. */
export const MAKE_ENVIRONMENT = `
set -euo pipefail
py=python3; [ -x /usr/bin/python3 ] && py=/usr/bin/python3
"$py" -m venv --without-pip ${ENVIRONMENT}
pip=$(echo /setup/pip-*.whl)
${ENVIRONMENT}/bin/python "$pip/pip" install -q --no-deps /setup/*.whl
mkdir -p ${ENVIRONMENT}/etc/conda/activate.d
`;

/** Adds wheels and variables to the environment, then runs the recipe's install in /testbed. */
export function installScript(recipe: {
  env: Record<string, string>;
  install: string | null;
  pip: string[];
}) {
  const variables = { PIP_NO_INDEX: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1', LANG: 'C.UTF-8', ...recipe.env };
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuoted(value)}`);
  return [
    'set -eo pipefail',
    `printf '%s\\n' ${exports.map(shellQuoted).join(' ')} > ${ENVIRONMENT}/etc/conda/activate.d/testbed.sh`,
    'source /opt/miniconda3/bin/activate && conda activate testbed',
    ...(recipe.pip.length > 0 ? ['python -m pip install -q --no-deps /setup/*.whl'] : []),
    'cd /testbed',
    recipe.install ?? ':',
  ].join('\n');
}

/** Runs a bash script in the tree, as its root user and without a package index. Throws the SwefarmError of {@link run}. */
export async function inTree(tree: Tree, script: string, options: InTreeOptions): Promise<RunResult> {
  const { signal, allow } = options;
  const common = { signal, env: CLEAN_ENV, ...(allow ? { allow } : {}), stdin: options.stdin ?? '' };
  const bash = ['/bin/bash', '--noprofile', '--norc', '-c', script] as const;
  if (tree.kind === 'host+dir') {
    return run(['bwrap', ...(await hostMounts(tree.path, options.setup)), ...bash], common);
  }
  const setup = join(tree.path, 'setup');
  try {
    if (options.setup !== undefined) await run(['cp', '-r', options.setup, setup], { signal });
    return await run(['chroot', tree.path, ...bash], common);
  } finally {
    await rm(setup, { recursive: true, force: true });
  }
}

/** Our stand-in for conda's activate script. */
export const activateText = (): Promise<string> => readFile(ACTIVATE, 'utf8');

/** Writes our stand-in for conda's activate script, and creates an empty /testbed, at the places where images have them. */
export async function writeActivate(tree: string): Promise<void> {
  const target = join(tree, 'opt/miniconda3/bin/activate');
  await mkdir(join(tree, 'opt/miniconda3/bin'), { recursive: true });
  await mkdir(join(tree, 'testbed'), { recursive: true });
  await copyFile(ACTIVATE, target);
  await chmod(target, 0o755);
}

/** The parts of the host's Python that an environment depends on; they are part of its cache key. */
export async function hostPython(signal: AbortSignal): Promise<string> {
  const script = 'import sys; print(sys.version, sys.executable)';
  const python = (await has('/usr/bin/python3', signal)) ? '/usr/bin/python3' : 'python3';
  return (await run([python, '-c', script], { signal })).stdout;
}

/** Why `host+dir` trees cannot be made here; null when they can. */
export async function hostProblem(signal: AbortSignal): Promise<string | null> {
  for (const [program, remedy] of [
    ['bwrap', 'no bubblewrap: apt-get install -y bubblewrap'],
    ['python3', 'no python3: apt-get install -y python3'],
  ] as const) {
    if (!(await has(program, signal))) return remedy;
  }
  const probe = ['bwrap', '--ro-bind', '/', '/', '--unshare-all', 'true'] as const;
  const ran = await run(probe, { signal, allow: [0, 1] });
  return ran.code === 0 ? null : `bubblewrap cannot make a sandbox here: ${ran.stderr.trim()}`;
}

/** Why the host cannot compile an extension; null when it can. */
export async function compilerProblem(signal: AbortSignal): Promise<string | null> {
  const probe =
    'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))';
  const python = (await has('/usr/bin/python3', signal)) ? '/usr/bin/python3' : 'python3';
  const headers = await run([python, '-c', probe], { signal, allow: [0, 1] });
  if (headers.code === 0 && (await has('cc', signal))) return null;
  return 'its C extension needs a compiler and Python headers: apt-get install -y gcc libc6-dev python3-dev';
}

/** bubblewrap's mounts: each top folder of the host separately, so that our folders can be added where the host has none. */
async function hostMounts(tree: string, setup: string | undefined): Promise<string[]> {
  const mounts = ['--unshare-all', '--die-with-parent', '--new-session'];
  const own = new Set(['dev', 'proc', 'sys', 'tmp', 'opt', 'testbed', 'setup', 'lost+found']);
  for (const name of await readdir('/')) {
    if (own.has(name)) continue;
    const path = `/${name}`;
    if ((await lstat(path)).isSymbolicLink()) mounts.push('--symlink', await readlink(path), path);
    else mounts.push('--ro-bind-try', path, path);
  }
  mounts.push('--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp');
  for (const name of await readdir('/opt').catch(() => [])) {
    if (name !== 'miniconda3') mounts.push('--ro-bind-try', `/opt/${name}`, `/opt/${name}`);
  }
  for (const inside of ['testbed', 'opt/miniconda3']) {
    await mkdir(join(tree, inside), { recursive: true });
    mounts.push('--bind', join(tree, inside), `/${inside}`);
  }
  if (setup !== undefined) mounts.push('--ro-bind', setup, '/setup');
  // Compilers and pip need a writable HOME.
  return [...mounts, '--setenv', 'HOME', '/tmp', '--chdir', '/testbed'];
}

/** Converts a missing prerequisite into the error for the caller. */
export const unusable = (problem: string): SwefarmError => new SwefarmError('example_prerequisite', problem);
