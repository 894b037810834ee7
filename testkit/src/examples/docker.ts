/** Imports finished trees into the Docker engine: one base image, and per example one layer with its repository and environment. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { has, run } from './run.ts';

const KEY_LABEL = 'swefarm.example.key';

/** Whether a Docker engine answers. */
export async function dockerAnswers(signal: AbortSignal): Promise<boolean> {
  if (!(await has('docker', signal))) return false;
  const quick = AbortSignal.any([signal, AbortSignal.timeout(10_000)]);
  const info = await run(['docker', 'version', '-f', '{{.Server.Version}}'], {
    signal: quick,
    allow: [0, 1],
  });
  return info.code === 0;
}

/** Image → the cache key of its build; images that the engine lacks are absent. */
export async function imageKeys(
  images: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const format = `{{join .RepoTags " "}}\t{{index .Config.Labels "${KEY_LABEL}"}}`;
  const argv = ['docker', 'image', 'inspect', '-f', format, ...images] as const;
  const { stdout } = await run(argv, { signal, allow: [0, 1] });
  const keys = new Map<string, string>();
  for (const line of stdout.split('\n').filter(Boolean)) {
    const [tags = '', key = ''] = line.split('\t');
    for (const tag of tags.split(' ')) keys.set(tag, key);
  }
  return keys;
}

/** Imports a whole tree as an image. Throws SwefarmError `example_command`. */
export async function importTree(
  tree: string,
  image: string,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  // Hard links made from the base while tar reads it change link counts, for which tar exits with 1.
  const script = `set -o pipefail
{ tar -C "$1" --numeric-owner --warning=no-file-changed --exclude='./dev/*' --exclude='./proc/*' -c . || [ $? = 1 ]; } |
  docker import -c "LABEL $3=$4" -c 'ENV LANG=C.UTF-8' -c 'WORKDIR /testbed' - "$2"`;
  await run(['bash', '-c', script, 'import', tree, image, KEY_LABEL, key], { signal });
}

/** Adds `tree`'s /testbed and environment as a layer on the base image. Throws SwefarmError `example_command`. */
export async function layerImage(
  tree: string,
  base: string,
  image: string,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const context = `${tree}.context`;
  const inside = 'opt/miniconda3/envs/testbed';
  try {
    await mkdir(join(context, 'layer/opt/miniconda3/envs'), { recursive: true });
    await run(['cp', '-a', join(tree, 'testbed'), join(context, 'layer/testbed')], { signal });
    await run(['cp', '-al', join(tree, inside), join(context, 'layer', inside)], { signal });
    await writeFile(
      join(context, 'Dockerfile'),
      `FROM ${base}\nCOPY layer/ /\nLABEL ${KEY_LABEL}=${key}\nWORKDIR /testbed\n`,
    );
    await run(['docker', 'build', '-q', '--network', 'none', '-t', image, context], { signal });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}
