// Publishes the artefacts of a release with the clients of their registries. Credentials are those of the clients: npmrc, the logins of
// Docker or Podman and Helm, TWINE_USERNAME and TWINE_PASSWORD.
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { engine, Failure, output, show } from './run.mjs';

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?\//;

/**
 * Checks that the clients of the registries are there, before anything is built. `oci`: address of a registry with a path for the chart
 * and the images; the other registries are URLs; null: do not publish there.
 * @throws Failure
 */
export async function checkClients({ oci, pypi }) {
  const missing = [];
  if (oci && !(await output('helm', ['version', '--short']).catch(() => null)))
    missing.push('helm, which pushes the chart: install it from https://helm.sh/docs/intro/install/');
  if (oci && (await engine()) === null)
    missing.push('Docker or Podman, which build and push the images: start one of them');
  if (pypi && !(await output('python3', ['-m', 'venv', '--help']).catch(() => null)))
    missing.push('python3 with venv, which runs twine: apt-get install python3-venv');
  if (missing.length > 0) throw new Failure(`nothing is published without ${missing.join('; ')}`);
}

/**
 * Publishes the release in the folder `out`. A repeated call continues: it skips npm packages that are published with the same content, and
 * files that pypi.org has.
 */
export async function publish(out, { version, npm, oci, pypi }) {
  if (oci) {
    await pushImages(join(out, 'images'), { oci, version });
    const plain = LOOPBACK.test(`${oci}/`) ? ['--plain-http'] : [];
    const chart = join(out, 'chart', `swefarm-${version}.tgz`);
    await show('helm', ['push', chart, `oci://${oci}/charts`, ...plain]);
  }
  if (pypi) await uploadPython(join(out, 'python'), pypi);
  if (npm) await publishPackages(join(out, 'npm'), npm);
}

async function pushImages(folder, { oci, version }) {
  const program = await engine();
  for (const target of ['worker', 'gateway']) {
    const name = `${oci}/swefarm-${target}:${version}`;
    await show(program, ['load', '-i', join(folder, `${target}.tar`)]);
    await show(program, ['tag', `swefarm-${target}:${version}`, name]);
    await show(program, ['push', name]);
  }
}

async function uploadPython(folder, url) {
  const venv = await mkdtemp(join(tmpdir(), 'swefarm-twine-'));
  try {
    await show('python3', ['-m', 'venv', venv]);
    await show(join(venv, 'bin/pip'), ['install', '--quiet', 'twine==7.0.0']);
    const files = (await readdir(folder)).map((name) => join(folder, name));
    // twine refuses this option for registries of which it does not know how they refuse a repeated upload.
    const skip = /(^|\.)pypi\.org$/.test(new URL(url).hostname) ? ['--skip-existing'] : [];
    const args = ['upload', '--non-interactive', ...skip, '--repository-url', url];
    await show(join(venv, 'bin/twine'), [...args, ...files]);
  } finally {
    await rm(venv, { recursive: true, force: true });
  }
}

/** Publishes `swefarm` last, because the libraries must exist before. */
async function publishPackages(folder, registry) {
  const names = (await readdir(folder)).sort().reverse();
  for (const name of names) {
    const path = join(folder, name);
    const integrity = `sha512-${createHash('sha512')
      .update(await readFile(path))
      .digest('base64')}`;
    const [, library, version] = /^swefarm-(?:([a-z]+)-)?(\d.*)\.tgz$/.exec(name);
    const record = `${library ? `@swefarm/${library}` : 'swefarm'}@${version}`;
    const args = ['view', record, 'dist.integrity', '--registry', registry];
    const published = await output('npm', args).catch(() => '');
    if (published === integrity) continue;
    if (published !== '') throw new Failure(`${record} is published with other content: raise the version`);
    await show('npm', ['publish', path, '--access', 'public', '--registry', registry]);
  }
}
