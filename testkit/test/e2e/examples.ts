/** Runs the examples with gold and with an untouched tree on one runtime, and returns the verdicts. */
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import { importTree } from '../../src/images/import.ts';
import { buildSif } from '../../src/images/sif.ts';
import { startPodman } from '../../src/launchers/podman.ts';
import { SLURM_USER } from '../../src/launchers/slurm.ts';
import { writeLines } from '../../src/lines.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { judgedLines } from './judged.ts';

export const apptainerPresent = (): boolean => spawnSync('apptainer', ['--version']).status === 0;

/** Verdicts by agent, in the order of the dataset. */
export type Verdicts = Record<'golden' | 'noop', (boolean | null)[]>;

const imageOf = (id: string): string => `swefarm/example.${id}:latest`;

/** Builds the examples in a folder that every user may enter. */
async function lay(ids: readonly string[] | undefined) {
  const folder = temporaryFolder('e2e');
  await chmod(folder, 0o755);
  const built = await buildExamples({ ...(ids ? { ids } : {}), for: 'rootfs', out: folder });
  const rows = built.rows.map((row) => ({ ...row, image: imageOf(row.instance_id) }));
  return { folder, built, dataset: await writeLines(join(folder, 'named.jsonl'), rows) };
}

async function verdicts(
  dataset: string,
  folder: string,
  runtime: string,
  env: Record<string, string>,
  root = true,
): Promise<Verdicts> {
  const paths = {
    HOME: folder,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
  };
  const of = async (agent: 'golden' | 'noop') => {
    const on = { dataset, runtime, output: join(folder, `${agent}.jsonl`) };
    const lines = await judgedLines(agent, on, { ...paths, ...env }, root ? undefined : SLURM_USER);
    // Gold must also have reward 1 and clean trust.
    const earned = (line: (typeof lines)[number]) =>
      line.reward === 1 && line.report?.trust.level === 'clean';
    return lines.map((line) => line.resolved && (agent === 'noop' || earned(line)));
  };
  return { golden: await of('golden'), noop: await of('noop') };
}

/** Runs on a new Podman, into which the examples' trees are imported. @param ids default: all */
export async function onPodman(ids?: readonly string[]): Promise<Verdicts> {
  const { folder, built, dataset } = await lay(ids);
  await using engine = await startPodman();
  for (const [id, tree] of treesOf(built)) await importTree(engine.socketPath, tree, imageOf(id));
  return await verdicts(dataset, folder, 'podman', { SWEFARM_PODMAN_SOCKET: engine.socketPath });
}

/** Runs on .sif files that `apptainer_images` finds by the instance id, as root or as another user. */
export async function onSif(root: boolean, ids?: readonly string[]): Promise<Verdicts> {
  const { folder, built, dataset } = await lay(ids);
  for (const [id, tree] of treesOf(built)) await buildSif(tree, join(folder, `sweb_s_${id}.sif`));
  const own = join(folder, 'own');
  await mkdir(own);
  if (!root) await chown(own, SLURM_USER.uid, SLURM_USER.gid);
  const env = { SWEFARM_APPTAINER_IMAGES: join(folder, 'sweb_s_{instance_id}.sif') };
  return await verdicts(dataset, own, 'apptainer', env, root);
}

/** Runs on the examples' unpacked folders with Apptainer. */
export async function onFolders(ids?: readonly string[]): Promise<Verdicts> {
  const { folder, built } = await lay(ids);
  return await verdicts(built.files.rootfs, folder, 'apptainer', {});
}

const treesOf = ({ examples }: BuiltExamples): [string, string][] =>
  examples.map(({ recipe, tree }) => [recipe.instance_id, tree.path]);
