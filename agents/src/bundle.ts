/** The folder of an installed bundle, as `bundle.json` in it describes it. */
import { z } from 'zod';

/** Where a bundle lies in every sandbox. The programs of a bundle know this path, so it never changes. */
export const mountPath = (bundle: string): string => `/opt/swefarm/agents/${bundle}`;

export const BundleManifest = z.object({
  format: z.literal('swefarm-bundle-1'),
  name: z.string(),
  /** sha256 of the lock file, and of the names, modes and contents of all files. */
  lock: z.string(),
  digest: z.string(),
  version: z.string(),
  bytes: z.number(),
  installed_at: z.string(),
});
export type BundleManifest = z.infer<typeof BundleManifest>;

/** An installed bundle. `folder` is mounted read-only at {@link mountPath}. */
export type Bundle = { folder: string; manifest: BundleManifest };
