/** `swefarm images`: lists, pulls, converts, checks and removes the images of a dataset on this node. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { BUILT_IMAGES, type Instance, inheritedEnvironment, UnusableError } from '@swefarm/shared';
import { renderTable } from '@swefarm/trajectories';
import { z } from 'zod';
import { command, commands, flag, group, text } from './declare.ts';
import { EXIT } from './exit.ts';
import { DATASET, datasetOf } from './options.ts';
import { print, printStatus } from './terminal.ts';

export const WORKER = fileURLToPath(new URL('../../../worker/bin/swefarm-worker.mjs', import.meta.url));

const ACTIONS = {
  list: 'list the images of the dataset, with their presence and sizes',
  pull: 'pull or build the images that are missing; safe to repeat',
  convert: 'make .sif files at apptainer_images (a path with {image}) from what the engine has or fetches',
  prune: 'remove images that the farm pulled and this dataset does not need',
  verify: 'compare with the digests recorded when the farm pulled them',
} as const;

const Line = z.object({
  image: z.string(),
  status: z.string(),
  digest: z.string().optional(),
  bytes: z.number().optional(),
  path: z.string().optional(),
  error: z.string().optional(),
});
type Line = z.infer<typeof Line>;

const imagesCommand = (action: string, description: string) =>
  command({
    description,
    options: {
      ...group('Output:', { '--json': flag('print one JSON object per image') }),
      ...group('Farm:', {
        '--worker-config <file>': text('configuration of the worker: runtime, mirrors, pulls at once'),
        '--runtime <name>': text('the runtime of the images: docker, podman, apptainer, …'),
      }),
      ...DATASET,
    },
    example: ['swefarm', 'images', action, '--dataset rows.jsonl'].join(' '),
    async run(o) {
      const { instances } = await datasetOf(o);
      const config = o.workerConfig === undefined ? [] : ['--config', o.workerConfig];
      if (o.runtime !== undefined) config.push('--runtime', o.runtime);
      return await runImages(action, instances, config, o.json);
    },
  });

export const images = commands(
  Object.fromEntries(
    Object.entries(ACTIONS).map(([action, description]) => [action, imagesCommand(action, description)]),
  ),
);

/** Returns the exit code: 0 if everything is as requested, 10 if an image is missing or failed, 12 if no runtime is usable. */
async function runImages(
  action: string,
  instances: readonly Instance[],
  config: readonly string[],
  json: boolean,
): Promise<number> {
  const uses = instances.flatMap((instance) =>
    [...imagesOf(instance)].map((image): Use => ({ image, instance })),
  );
  const needed = Map.groupBy(uses, ({ image }) => image);
  const lines: Line[] = [];
  const code = await callWorker(['images', action, ...config], needed, async (text) => {
    const line = Line.parse(JSON.parse(text));
    lines.push(line);
    if (json) await print(JSON.stringify(line));
    else if (action === 'pull' || action === 'convert') {
      const error = line.error ? `: ${line.error}` : '';
      printStatus(`${lines.length}/${needed.size} ${line.status} ${line.image}${error}`);
    }
  });
  if (code !== 0 && code !== EXIT.someNotJudged) return code;
  if (!json) await print(tableOf(lines));
  return code;
}

function tableOf(lines: readonly Line[]): string {
  const mega = (bytes: number | undefined): string =>
    bytes === undefined ? '' : `${Math.round(bytes / 1e6)} MB`;
  const rows = lines
    .toSorted((a, b) => (a.image < b.image ? -1 : 1))
    .map(({ image, status, bytes, error, path, digest = '' }) => [
      ...[image, status, mega(bytes)],
      error ?? path ?? digest.slice(0, 'sha256:'.length + 12),
    ]);
  const bytes = lines.reduce((sum, line) => sum + (line.bytes ?? 0), 0);
  return renderTable(
    [{ name: 'IMAGE' }, { name: 'STATUS' }, { name: 'SIZE', align: 'right' }, { name: 'DETAIL' }],
    [
      ...rows,
      [`${lines.length} image${lines.length === 1 ? '' : 's'}`, '', bytes > 0 ? mega(bytes) : '', ''],
    ],
  );
}

type Use = { image: string; instance: Instance };

/** Returns the images of the containers of an instance. */
const imagesOf = ({ image, harbor }: Instance): Set<string> =>
  new Set([image, harbor?.verifier.separate?.image ?? image]);

function* linesOf(needed: ReadonlyMap<string, readonly Use[]>): Generator<string> {
  for (const [image, own] of needed) {
    const harbor = own[0]?.instance.harbor;
    const instances = own.map(({ instance }) => instance.instance_id);
    yield `${JSON.stringify({ image, instances, ...(image.startsWith(BUILT_IMAGES) ? { harbor } : {}) })}\n`;
  }
}

/** Runs `swefarm-worker` with its log on standard error. Returns the exit code. Throws UnusableError. */
async function callWorker(
  args: readonly string[],
  needed: ReadonlyMap<string, readonly Use[]>,
  onLine: (text: string) => Promise<void>,
): Promise<number> {
  const child = spawn(process.execPath, [WORKER, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: inheritedEnvironment({}),
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new UnusableError('worker', `swefarm-worker cannot be started: ${error.message}`)),
    );
    child.once('close', (code) => resolve(code ?? EXIT.interrupted));
  });
  // This process outlives the worker, so that the worker can remove the files of an interrupted conversion.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  child.stdin.on('error', () => undefined);
  Readable.from(linesOf(needed)).pipe(child.stdin);
  for await (const line of createInterface({ input: child.stdout })) if (line !== '') await onLine(line);
  return await ended;
}
