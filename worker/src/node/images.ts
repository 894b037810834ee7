/**
 * `swefarm-worker images ACTION`: lists, pulls, converts, prunes or verifies images on this node. Stdin has one image per line, followed by
 * the instances that need it; the output has a JSON line per image, in the order of completion.
 */
import { join } from 'node:path';
import type { ImageInspection, ImageLine, Runtime } from '@swefarm/sandbox';
import { openConverter } from '@swefarm/sandbox';
import { createSemaphore, errorMessage, UnusableError, UsageError, type WorkerConfig } from '@swefarm/shared';
import type { Logger } from 'pino';
import { chooseEngine, chooseRuntime } from './runtimes.ts';

export const IMAGE_ACTIONS = ['list', 'pull', 'convert', 'prune', 'verify'] as const;
export type ImageAction = (typeof IMAGE_ACTIONS)[number];

const IMAGES_AT_ONCE = 16;

type Needed = { image: string; instances: readonly string[] };

type ImagesCommand = {
  config: WorkerConfig;
  log: Logger;
  signal: AbortSignal;
  print(line: ImageLine): void;
};

/** Parses lines of the form `IMAGE` or `IMAGE<tab>INSTANCE<tab>…`. */
export function readNeeded(text: string): Needed[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [image = '', ...instances] = line.split('\t');
      return { image, instances };
    });
}

/** Returns true when nothing failed and no requested image is missing. Throws UnusableError, UsageError, and the signal's reason. */
export async function runImages(
  action: ImageAction,
  needed: readonly Needed[],
  command: ImagesCommand,
): Promise<boolean> {
  const { signal, print } = command;
  await using work = await openAction(action, command);
  if (action === 'prune') {
    for (const line of await work.prune(new Set(needed.map(({ image }) => image)))) print(line);
    return true;
  }
  const slots = createSemaphore(IMAGES_AT_ONCE);
  let complete = true;
  let unusable: unknown = null;
  await Promise.all(
    needed.map((one) =>
      slots.run(async () => {
        const { image } = one;
        const line = await work.one(one).catch((error: unknown): ImageLine => {
          if (error instanceof UnusableError || error instanceof UsageError) unusable = error;
          return { image, status: 'failed', error: oneLine(error) };
        });
        // An interrupted action has not failed. A problem that affects all images is thrown once.
        if (signal.aborted || unusable !== null) return;
        if (['absent', 'changed', 'failed'].includes(line.status)) complete = false;
        print(line);
      }),
    ),
  );
  signal.throwIfAborted();
  if (unusable !== null) throw unusable;
  return complete;
}

type Action = AsyncDisposable & {
  one(needed: Needed): Promise<ImageLine>;
  prune(needed: ReadonlySet<string>): Promise<ImageLine[]>;
};

async function openAction(action: ImageAction, { config, log, signal }: ImagesCommand): Promise<Action> {
  if (action === 'convert') return await openConversion(config, log, signal);
  const { runtime } = await chooseRuntime(config, log, signal);
  return {
    async one({ image, instances }) {
      if (action !== 'pull')
        return await requireInspection(runtime).look(image, action === 'verify', instances);
      const ready = await runtime.ensureImage(image, signal, instances[0]);
      return { image, status: ready.pulled ? 'pulled' : 'present', digest: ready.digest };
    },
    prune: (images) => requireInspection(runtime).prune(images),
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}

/** Opens a container engine only when an image has to come from one. */
async function openConversion(config: WorkerConfig, log: Logger, signal: AbortSignal): Promise<Action> {
  let engine: ReturnType<typeof chooseEngine> | null = null;
  const converter = await openConverter({
    templates: config.apptainer_images,
    command: config.apptainer_command,
    folder: join(config.images_dir, 'converting'),
    atOnce: config.image_pulls,
    async ensure(image) {
      engine ??= chooseEngine(config, log, signal);
      const { runtime, socketPath } = await engine;
      await runtime.ensureImage(image, signal);
      return socketPath;
    },
    signal,
  });
  return {
    one: ({ image }) => converter.convert(image),
    prune: () => Promise.resolve([]),
    async [Symbol.asyncDispose]() {
      const opened = await engine?.catch(() => null);
      await opened?.runtime[Symbol.asyncDispose]();
    },
  };
}

function requireInspection(runtime: Runtime): ImageInspection {
  if (runtime.inspection) return runtime.inspection;
  throw new UsageError(
    `runtime ${runtime.name}: list, verify and prune are for docker, podman and apptainer; pull works everywhere`,
  );
}

const oneLine = (error: unknown): string => errorMessage(error).replaceAll(/\s*\n\s*/g, ' ');
