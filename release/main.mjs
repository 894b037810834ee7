// Builds everything that a release publishes from one version, and publishes it if asked to.
// usage: npm run release [-- --out DIR] [--base IMAGE] [--publish [--npm URL] [--oci REGISTRY/PATH] [--pypi URL]]
//   --out DIR    folder of the artefacts; default: dist/release/VERSION. Its folder `assets` has all files under names that differ, and
//                SHA256SUMS
//   --base IMAGE base of the images of worker and gateway (docker/build.mjs)
//   --publish    publishes to the registries of --npm, --oci (chart and images) and --pypi (upload address), or of the environment:
//                RELEASE_NPM, RELEASE_OCI, RELEASE_PYPI
// Prints one JSON line for each file. Exit codes: 0 success; 2 wrong usage, changed files, versions that differ, or no section of the
// changelog; 12 a program is missing or failed.
import { mkdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { originOf } from '../compile/origin.mjs';
import { ROOT } from '../compile/pieces.mjs';
import { buildArtefacts, writeAssets } from './artefacts.mjs';
import { checkedRelease, Refusal } from './checks.mjs';
import { checkClients, publish } from './publish.mjs';

const REGISTRIES = ['npm', 'oci', 'pypi'];

function readArguments() {
  const options = Object.fromEntries(
    ['out', 'base', ...REGISTRIES].map((name) => [name, { type: 'string' }]),
  );
  let values;
  try {
    ({ values } = parseArgs({ options: { ...options, publish: { type: 'boolean' } } }));
  } catch (error) {
    throw new Refusal(error.message);
  }
  const flags = REGISTRIES.filter((name) => values[name]);
  if (!values.publish && flags.length > 0)
    throw new Refusal(`--${flags[0]} publishes nothing without --publish`);
  const registries = Object.fromEntries(
    REGISTRIES.map((name) => [name, values[name] ?? (process.env[`RELEASE_${name.toUpperCase()}`] || null)]),
  );
  if (values.publish && Object.values(registries).every((address) => address === null))
    throw new Refusal('--publish needs a registry: --npm URL, --oci REGISTRY/PATH or --pypi URL');
  return { ...values, registries };
}

async function main() {
  const given = readArguments();
  const { version, notes } = await checkedRelease();
  if (given.publish) await checkClients(given.registries);
  const out = resolve(given.out ?? join(ROOT, 'dist/release', version));
  const draft = `${out}.draft-${process.pid}`;
  await mkdir(draft, { recursive: true });
  try {
    const leftOut = await buildArtefacts(draft, {
      origin: await originOf(),
      notes,
      base: given.base ?? null,
    });
    for (const file of await writeAssets(draft, version)) console.log(JSON.stringify(file));
    await rm(out, { recursive: true, force: true });
    await rename(draft, out);
    for (const reason of leftOut) console.error(`release: ######## left out: ${reason}`);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  if (!given.publish) return console.error(`release: ${out}; nothing was published (--publish)`);
  await publish(out, { version, ...given.registries });
  const unnamed = REGISTRIES.filter((name) => given.registries[name] === null);
  for (const name of unnamed) console.error(`release: ######## not published: --${name} is not given`);
}

await main().catch((error) => {
  console.error(`release: ${error.message}`);
  process.exitCode = error instanceof Refusal ? 2 : 12;
});
