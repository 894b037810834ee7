// Describes what a build contains: its commit, time and version, and the list of its packages.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './pieces.mjs';

const run = promisify(execFile);

/** Runs git in the checkout and returns its output; empty if git fails, as outside a clone. */
export const git = async (...args) =>
  (await run('git', ['-C', ROOT, ...args]).catch(() => ({ stdout: '' }))).stdout.trim();

/**
 * Returns the origin of a build. `seconds` is its time: SOURCE_DATE_EPOCH, else the time of the commit. `revision` ends with `-dirty` if
 * tracked files have changes.
 */
export async function originOf() {
  // biome-ignore lint/suspicious/noUndeclaredEnvVars: the usual name for the time of a build, and no task of Turborepo
  const seconds = Number(process.env.SOURCE_DATE_EPOCH || (await git('log', '-1', '--format=%ct')) || 0);
  const dirty = (await git('status', '--porcelain', '--untracked-files=no')) === '' ? '' : '-dirty';
  const { version, repository } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const remote = (await git('config', '--get', 'remote.origin.url')).replace(/\/\/[^@/]*@/, '//');
  const source = repository?.url ?? (/^https:/.test(remote) ? remote : 'unknown');
  return { seconds, version, revision: `${(await git('rev-parse', 'HEAD')) || 'unknown'}${dirty}`, source };
}

/** Returns the production packages of the lockfile as CycloneDX. The serial number is removed, because it differs between builds. */
export async function billOfMaterials({ seconds }) {
  const args = [
    'sbom',
    '--sbom-format',
    'cyclonedx',
    '--omit',
    'dev',
    '--package-lock-only',
    '--workspaces',
    '--include-workspace-root',
  ];
  const { stdout } = await run('npm', args, { cwd: ROOT, maxBuffer: 1 << 28 });
  const { serialNumber: _number, ...bill } = JSON.parse(stdout);
  // By default, npm uses the name of the folder.
  bill.metadata.component.name = 'swefarm';
  bill.metadata.timestamp = new Date(seconds * 1000).toISOString();
  return `${JSON.stringify(bill, null, 1)}\n`;
}
