/** Makes the lock of a Python bundle: apt resolves the Debian packages, and pip of the bundle's own interpreter the Python packages. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryParseJson } from '@swefarm/shared';
import { z } from 'zod';
import { digestOf } from '../store/contents.ts';
import { requireAnswer } from './builder.ts';
import { debianSources, unpackDebian } from './debian.ts';
import { copyFolders, debianPython, pipOf, type RunPython, requireSource } from './python.ts';
import type { PythonLock } from './pythonlock.ts';
import { runProgram } from './run.ts';

const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Returns the lock with the newest packages that its requirements allow, for a version of the agent. Needs apt-get, but installs nothing on
 * this machine.
 *
 * @param source checkout of the agent, for a lock with `source`
 * @throws UsageError without a checkout; SwefarmError build_step with the message of apt-get or pip; the reason of the signal
 */
export async function lockPython(
  lock: PythonLock,
  version: string,
  source: string | null,
  signal: AbortSignal,
): Promise<PythonLock> {
  const requirements = lock.request.requirements.map((one) =>
    one.replace(`==${lock.version}`, `==${version}`),
  );
  const request = { ...lock.request, requirements };
  const work = await mkdtemp(join(tmpdir(), 'swefarm-lock-'));
  try {
    const snapshot = snapshotNow();
    const sources = await debianSources(snapshot);
    const debian = await resolveDebian(request, sources[0] ?? '', work, signal);
    const root = join(work, 'root');
    await unpackDebian(debian, root, sources, signal);
    const wheels = await resolveWheels(
      request,
      debianPython(root, lock.python),
      await pipOf(root),
      work,
      signal,
    );
    return {
      ...lock,
      version,
      request,
      snapshot,
      debian,
      wheels,
      source: await lockSource(lock, work, source, signal),
    };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function lockSource(
  { source }: PythonLock,
  work: string,
  given: string | null,
  signal: AbortSignal,
): Promise<PythonLock['source']> {
  if (!source) return null;
  const checkout = requireSource(given);
  const copy = join(work, 'src');
  await copyFolders(checkout, source.folders, copy);
  const revision = await runProgram('git', ['-C', checkout, 'rev-parse', 'HEAD'], { signal }).catch(
    () => source.revision,
  );
  return { ...source, revision: revision.trim(), sha256: (await digestOf(copy, signal)).digest };
}

export const snapshotNow = (): string => new Date().toISOString().replace(/[-:]|\.\d+/g, '');

/** Asks apt-get with folders of its own, in which no package is installed, so that every dependency is named. */
export async function resolveDebian(
  { suite, debian, debian_without }: Pick<PythonLock['request'], 'suite' | 'debian' | 'debian_without'>,
  mirror: string,
  work: string,
  signal: AbortSignal,
): Promise<PythonLock['debian']> {
  const apt = join(work, 'apt');
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'etc/preferences.d']) {
    await mkdir(join(apt, folder), { recursive: true });
  }
  await writeFile(join(apt, 'state/status'), '');
  await writeFile(join(apt, 'etc/sources.list'), `deb [signed-by=${KEYS}] ${mirror} ${suite} main\n`);
  const settings = {
    'Dir::State': join(apt, 'state'),
    'Dir::State::status': join(apt, 'state/status'),
    'Dir::Cache': join(apt, 'cache'),
    'Dir::Etc': join(apt, 'etc'),
    'Dir::Etc::sourceparts': '-',
    'APT::Architecture': 'amd64',
    'APT::Architectures': 'amd64',
    // The default prints MD5.
    'Acquire::ForceHash': 'sha256',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  await runProgram('apt-get', [...options, '-qq', 'update'], { signal });
  const asked = ['--print-uris', '-qq', '--no-install-recommends', 'install', ...debian];
  const text = await runProgram('apt-get', [...options, ...asked], { signal });
  const found = [...text.matchAll(/^'(\S+)' ([^_\s]+)_(\S+)_\w+\.deb (\d+) SHA256:([0-9a-f]{64})$/gm)];
  return found
    .map(([, url = '', name = '', version = '', bytes, sha256 = '']) => ({
      ...{ name, version: decodeURIComponent(version), file: url.slice(mirror.length + 1) },
      ...{ bytes: Number(bytes), sha256 },
    }))
    .filter(({ name }) => !debian_without.includes(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

const Report = z.object({
  install: z.array(
    z.object({
      metadata: z.object({ name: z.string(), version: z.string() }),
      download_info: z.object({ archive_info: z.object({ hashes: z.object({ sha256: z.string() }) }) }),
    }),
  ),
});

/** An empty wheel for pip's resolver, in place of a package that has none and is not installed. */
const STAND_IN = `
import sys, zipfile
folder, name, version = sys.argv[1:]
info = name + "-" + version + ".dist-info/"
with zipfile.ZipFile(folder + "/" + name + "-" + version + "-py3-none-any.whl", "w") as wheel:
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: " + name + "\\nVersion: " + version + "\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "")
`;

async function resolveWheels(
  request: PythonLock['request'],
  python: RunPython,
  pip: readonly string[],
  work: string,
  signal: AbortSignal,
): Promise<PythonLock['wheels']> {
  const run = (args: string[]): Promise<string> => runProgram(...python(args), { signal });
  const report = join(work, 'report.json');
  const standIns = join(work, 'stand-ins');
  await mkdir(standIns);
  const without = new Set<string>();
  for (const one of request.without) {
    const [name = '', version] = one.split('==');
    without.add(normal(name));
    if (version) await run(['-I', '-c', STAND_IN, standIns, name.replaceAll('-', '_'), version]);
  }
  const fixed = ['--dry-run', '--ignore-installed', '--only-binary', ':all:', '--find-links', standIns];
  const files = ['--target', join(work, 'none'), '--report', report];
  await run([...pip, 'install', '--quiet', ...fixed, ...files, ...request.requirements]);
  const { install } = requireAnswer('pip install', Report, tryParseJson(await readFile(report, 'utf8')));
  return install
    .map(({ metadata: { name, version }, download_info }) => ({
      ...{ name: normal(name), version, sha256: download_info.archive_info.hashes.sha256 },
    }))
    .filter(({ name }) => !without.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The one spelling of a package's name. */
const normal = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, '-');
