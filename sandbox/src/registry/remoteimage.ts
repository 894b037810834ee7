/** Finds the image of this machine's platform behind a tag or a digest. */
import { RolloutFailure } from '@swefarm/shared';
import { z } from 'zod';
import { type ImageConfig, readConfig } from '../images/config.ts';
import { Configuration, type Descriptor, forThisMachine, Index, Manifest } from '../images/manifest.ts';
import type { Repository } from './client.ts';
import type { Reference } from './reference.ts';

export type RemoteLayer = {
  /** Digest of the blob, which may be compressed. */
  digest: string;
  /** Bytes of the blob. */
  size: number;
  /** Digest of the uncompressed tar. */
  diffId: string;
};

export type RemoteImage = {
  /** Digest of the configuration, which is the engines' image id. */
  digest: string;
  config: ImageConfig;
  /** The lowest first. */
  layers: RemoteLayer[];
  /** The manifest and the configuration as the registry has them. */
  documents: { manifest: Buffer; mediaType: string; config: Buffer };
};

const DEEPEST = 3;
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const LAYER =
  /^application\/vnd\.(?:oci\.image\.layer(?:\.nondistributable)?\.v1\.tar|docker\.image\.rootfs(?:\.foreign)?\.diff\.tar)(?:[.+](?:gzip|zstd))?$/;
const Typed = z.object({ mediaType: z.string().optional(), schemaVersion: z.number().optional() });

/** Throws RolloutFailure image_not_found for content that is no image of this platform, and errors of the repository. */
export async function readRemoteImage(
  repository: Repository,
  { registry, repository: name, reference }: Reference,
): Promise<RemoteImage> {
  const refuse = (why: string): never => {
    throw new RolloutFailure('image_not_found', `${name} ${reference} at ${registry} ${why}`);
  };
  let wanted = reference;
  for (let depth = 0; depth < DEEPEST; depth++) {
    const bytes = await repository.manifest(wanted);
    const document: unknown = JSON.parse(bytes.toString());
    const index = Index.safeParse(document);
    if (index.success) {
      const found = forThisMachine(index.data.manifests);
      wanted = found?.digest ?? refuse(`has no image for linux/${process.arch}`);
      continue;
    }
    const { mediaType = OCI_MANIFEST, schemaVersion } = Typed.parse(document);
    if (schemaVersion === 1) refuse('has the withdrawn format schema 1: push the image again');
    const manifest = Manifest.parse(document);
    const other = manifest.layers.find(({ mediaType = '' }) => !LAYER.test(mediaType));
    if (other) refuse(`is no image of a container: it has a layer of type ${other.mediaType}`);
    const config = await repository.small(manifest.config.digest);
    return { ...imageOf(manifest, config), documents: { manifest: bytes, mediaType, config } };
  }
  return refuse('is an index within an index within an index');
}

function imageOf(
  manifest: z.infer<typeof Manifest>,
  bytes: Buffer,
): Pick<RemoteImage, 'digest' | 'config' | 'layers'> {
  const { config, rootfs } = Configuration.parse(JSON.parse(bytes.toString()));
  const diffIds = rootfs?.diff_ids ?? [];
  if (diffIds.length !== manifest.layers.length)
    throw new RolloutFailure(
      'image_not_found',
      `the configuration ${manifest.config.digest} names ${diffIds.length} layers, and its manifest ${manifest.layers.length}`,
    );
  const layers = manifest.layers.map(({ digest, size = 0 }: Descriptor, at) => ({
    ...{ digest, size },
    diffId: diffIds[at] as string,
  }));
  return { digest: manifest.config.digest, config: readConfig(config), layers };
}
