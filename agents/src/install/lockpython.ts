/** Makes the lock of a Python bundle: apt resolves the Debian packages, and pip of the bundle's own interpreter the Python packages. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SwefarmError } from '@swefarm/shared';
import { z } from 'zod';
import { debianMirror, unpackDebian } from './debian.ts';
import { copyFolders, debianPython, pipOf, sourceDigest } from './python.ts';
import { PythonLock } from './pythonlock.ts';
import { runProgram } from './run.ts';

const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** What stays the same when a lock is made again. */
export type PythonRequest = Pick<PythonLock, 'version' | 'wish' | 'python' | 'programs' | 'drop'> & {
  source: { folders: string[]; revision: string } | null;
};

/**
 * Returns a lock with the newest packages that the request allows. Needs apt-get, but changes nothing of this machine.
 *
 * @param checkout folder of the agent, for a request with `source`
 * @throws SwefarmError build_step with the message of apt-get or pip
 */
export async function lockPython(
  request: PythonRequest,
  { checkout, signal }: { checkout?: string; signal: AbortSignal },
): Promise<PythonLock> {
  const work = await mkdtemp(join(tmpdir(), 'swefarm-lock-'));
  try {
    const mirror = await debianMirror();
    const snapshot = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
    const debian = await resolveDebian(request.wish, mirror, work, signal);
    const root = join(work, 'root');
    await unpackDebian(debian, snapshot, root, { mirror, signal });
    const wheels = await resolveWheels(request, root, work, signal);
    const { source, ...rest } = request;
    return PythonLock.parse({
      kind: 'python',
      ...rest,
      ...{ snapshot, debian, wheels },
      source: source && { ...source, sha256: await checkoutDigest(source.folders, work, checkout, signal) },
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Asks apt-get with folders of its own, in which no package is installed, so that every dependency is named. */
async function resolveDebian(
  { suite, debian, debian_without }: PythonLock['wish'],
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
  { wish, python }: PythonRequest,
  root: string,
  work: string,
  signal: AbortSignal,
): Promise<PythonLock['wheels']> {
  const run = (args: string[]): Promise<string> =>
    runProgram(...debianPython(root, python)(args), { signal });
  const report = join(work, 'report.json');
  const standIns = join(work, 'stand-ins');
  await mkdir(standIns);
  const without = new Set<string>();
  for (const one of wish.without) {
    const [name = '', version] = one.split('==');
    without.add(normal(name));
    if (version) await run(['-I', '-c', STAND_IN, standIns, name.replaceAll('-', '_'), version]);
  }
  const fixed = ['--dry-run', '--ignore-installed', '--only-binary', ':all:', '--find-links', standIns];
  const files = ['--target', join(work, 'none'), '--report', report];
  await run([...(await pipOf(root)), 'install', '--quiet', ...fixed, ...files, ...wish.requirements]);
  const { install } = Report.parse(JSON.parse(await readFile(report, 'utf8')));
  return install
    .map(({ metadata: { name, version }, download_info }) => ({
      ...{ name: normal(name), version, sha256: download_info.archive_info.hashes.sha256 },
    }))
    .filter(({ name }) => !without.has(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The one spelling of a package's name. */
const normal = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, '-');

async function checkoutDigest(
  folders: readonly string[],
  work: string,
  checkout: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (checkout === undefined) {
    throw new SwefarmError(
      'source_missing',
      'this agent is on no registry: give a checkout of it (--source FOLDER)',
    );
  }
  const copy = join(work, 'src');
  await copyFolders(checkout, folders, copy);
  return await sourceDigest(copy, signal);
}
