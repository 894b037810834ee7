/** Lets Apptainer convert images of registries on machines without an engine. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { newId, type WorkerConfig } from '@swefarm/shared';
import { createFetch, fetchSettings } from '../images/fetch.ts';
import { openTemporaryFolder } from '../images/temporary.ts';
import { writeLayout } from '../registry/layout.ts';
import { registrySettings } from '../registry/settings.ts';
import { RegistrySource } from '../registry/source.ts';
import type { ConvertDeps } from './convert.ts';

export type RegistryConversion = AsyncDisposable & Pick<ConvertDeps, 'withSource'>;

/**
 * Opens the registries of a configuration. Layers that several images share are fetched once; the disposal removes them unless
 * `image_blobs_dir` is set. Throws UsageError.
 * @param parent folder for layers and layouts
 */
export async function openRegistryConversion(
  config: WorkerConfig,
  parent: string,
): Promise<RegistryConversion> {
  const fetch = createFetch(fetchSettings(config));
  await using opened = new AsyncDisposableStack();
  const { path } = opened.use(await openTemporaryFolder(parent));
  const options = { ...registrySettings(config), fetch, folder: join(path, 'blobs') };
  const registry = opened.use(new RegistrySource(options));
  const owned = opened.move();
  return {
    withSource: (image, work) =>
      registry.open(image, async (open) => {
        const layout = join(path, newId());
        try {
          await writeLayout(layout, open);
          await work({ options: [], uri: `oci:${layout}` });
        } finally {
          await rm(layout, { recursive: true, force: true });
        }
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
