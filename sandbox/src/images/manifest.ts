/** Documents of images: indexes, manifests and configurations of OCI and Docker (image-spec 1.1). */
import { hash } from 'node:crypto';
import { z } from 'zod';

const Digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

export const Descriptor = z.object({
  mediaType: z.string().optional(),
  digest: Digest,
  size: z.number().int().nonnegative().optional(),
  platform: z.object({ os: z.string(), architecture: z.string() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
export type Descriptor = z.infer<typeof Descriptor>;

export const Index = z.object({ manifests: z.array(Descriptor) });
export const Manifest = z.object({ config: Descriptor, layers: z.array(Descriptor) });
export const Configuration = z.object({
  config: z.unknown(),
  rootfs: z.object({ diff_ids: z.array(Digest) }).optional(),
});

export const sha256 = (bytes: Uint8Array): string => `sha256:${hash('sha256', bytes)}`;

/** Returns the first entry for Linux and the architecture of this machine, or without a platform. */
export function forThisMachine(manifests: readonly Descriptor[]): Descriptor | undefined {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  return manifests.find(
    ({ platform }) => !platform || (platform.os === 'linux' && platform.architecture === architecture),
  );
}
