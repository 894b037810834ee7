/**
 * `swefarm-worker images ACTION`: lists, pulls or builds, converts, prunes or verifies images on this node. Stdin and output have a JSON
 * line per image; the output is in the order of completion.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  type ImageInspection,
  type ImageLine,
  openConverter,
  openRegistryConversion,
  type Runtime,
  sourceInEngine,
} from '@swefarm/sandbox';
import {
  createSemaphore,
  errorMessage,
  HarborTask,
  UnusableError,
  UsageError,
  type WorkerConfig,
} from '@swefarm/shared';
import type { Logger } from 'pino';
import { z } from 'zod';
import { imageOf, verifierImageOf } from '../harbor/settings.ts';
import { chooseEngine, chooseRuntime } from './runtimes.ts';

export const IMAGE_ACTIONS = ['list', 'pull', 'convert', 'prune', 'verify'] as const;
export type ImageAction = (typeof IMAGE_ACTIONS)[number];

const IMAGES_AT_ONCE = 16;

/** A line of stdin. `harbor` is the task from which the image is built. */
const Needed = z.object({
  image: z.string(),
  instances: z.array(z.string()),
  harbor: HarborTask.optional(),
});
type Needed = z.infer<typeof Needed>;

type ImagesCommand = {
  config: WorkerConfig;
  log: Logger;
  signal: AbortSignal;
  print(line: ImageLine): void;
};

/** Parses one JSON line per image. Throws ZodError and SyntaxError. */
export async function readNeeded(input: NodeJS.ReadableStream): Promise<Needed[]> {
  const needed: Needed[] = [];
  for await (const line of createInterface({ input })) needed.push(Needed.parse(JSON.parse(line)));
  return needed;
}

/** Returns true when nothing failed and no image is missing or changed. Throws UnusableError, UsageError, and the signal's reason. */
export async function runImages(
  action: ImageAction,
  needed: readonly Needed[],
  command: ImagesCommand,
): Promise<boolean> {
  const { config, log, signal, print } = command;
  await using stack = new AsyncDisposableStack();
  if (action === 'convert') return await eachImage(needed, await openConversion(command, stack), command);
  const { runtime } = await chooseRuntime(config, log, signal);
  stack.use(runtime);
  if (action === 'prune') {
    const wanted = new Set(needed.map(({ image }) => image));
    for (const line of await requireInspection(runtime).prune(wanted)) print(line);
    return true;
  }
  const work: Work = async ({ image, instances, harbor }) => {
    if (action !== 'pull')
      return await requireInspection(runtime).look(image, action === 'verify', instances);
    const given = { image, instance_id: instances[0] ?? image, harbor };
    const ofVerifier = image === harbor?.verifier.separate?.image;
    const own = ofVerifier ? await verifierImageOf(given, runtime, signal) : null;
    const ready = own ?? (await imageOf(given, runtime, signal));
    return { image, status: ready.pulled ? 'pulled' : 'present', digest: ready.digest };
  };
  return await eachImage(needed, work, command);
}

type Work = (needed: Needed) => Promise<ImageLine>;

async function eachImage(needed: readonly Needed[], work: Work, { signal, print }: ImagesCommand) {
  const slots = createSemaphore(IMAGES_AT_ONCE);
  let complete = true;
  let unusable: unknown = null;
  const one = async (wanted: Needed): Promise<void> => {
    const { image } = wanted;
    const line = await work(wanted).catch((error: unknown): ImageLine => {
      if (error instanceof UnusableError || error instanceof UsageError) unusable = error;
      return { image, status: 'failed', error: oneLine(error) };
    });
    // An interrupted action has not failed. A problem that affects all images is thrown once.
    if (signal.aborted || unusable !== null) return;
    if (['absent', 'changed', 'failed'].includes(line.status)) complete = false;
    print(line);
  };
  await Promise.all(needed.map((wanted) => slots.run(() => one(wanted))));
  signal.throwIfAborted();
  if (unusable !== null) throw unusable;
  return complete;
}

/** Opens engine and registries only when an image has to come from there. */
async function openConversion(command: ImagesCommand, stack: AsyncDisposableStack): Promise<Work> {
  const { config, signal } = command;
  const folder = join(config.images_dir, 'converting');
  // The promises are also remembered after a failure, because each choice asks every engine.
  let engine: ReturnType<typeof engineFor> | null = null;
  let registries: ReturnType<typeof openRegistryConversion> | null = null;
  stack.defer(async () => {
    const [opened, others] = await Promise.allSettled([engine, registries]);
    if (opened.status === 'fulfilled') await opened.value?.runtime[Symbol.asyncDispose]();
    if (others.status === 'fulfilled') await others.value?.[Symbol.asyncDispose]();
  });
  const converter = await openConverter({
    templates: config.apptainer_images,
    command: config.apptainer_command,
    folder,
    atOnce: config.image_pulls,
    async withSource(image, work) {
      engine ??= engineFor(command);
      const opened = await engine;
      if (opened) {
        await opened.runtime.ensureImage(image, signal);
        return await work(sourceInEngine(image, opened.socketPath));
      }
      registries ??= openRegistryConversion(config, folder);
      return await (await registries).withSource(image, work);
    },
    signal,
  });
  return ({ image }) => converter.convert(image);
}

/** Returns the engine for conversions; null: images come from their registries. Throws UnusableError if the configured engine is unusable. */
async function engineFor({ config, log, signal }: ImagesCommand) {
  if (config.runtime === 'rootfs') return null;
  try {
    return await chooseEngine(config, log, signal);
  } catch (error) {
    if (!(error instanceof UnusableError) || ['docker', 'podman'].includes(config.runtime)) throw error;
    log.info({ err: error.message }, 'no engine: fetching images from registries');
    return null;
  }
}

function requireInspection(runtime: Runtime): ImageInspection {
  if (runtime.inspection) return runtime.inspection;
  const why = 'it has no images: list, verify and prune are for the other runtimes';
  throw new UsageError(`runtime ${runtime.name}: ${why}`);
}

const oneLine = (error: unknown): string => errorMessage(error).replaceAll(/\s*\n\s*/g, ' ');
