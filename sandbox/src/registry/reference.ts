/** Splits names of images into the parts that the API of a registry needs. */
import { RolloutFailure } from '@swefarm/shared';
import { fullName, withTag } from '../images/names.ts';

export type Reference = {
  /** Address of the API, `host` or `host:port`. */
  registry: string;
  repository: string;
  /** Digest if the name has one, else tag. */
  reference: string;
};

/** Grammar of repositories and tags in the OCI distribution specification 1.1. */
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REGISTRY = /^(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::\d{1,5})?$/;
/** Docker Hub serves its API under another name. */
const HUB = 'registry-1.docker.io';

/** Completes a name as engines do (`bash` is `docker.io/library/bash:latest`). Throws RolloutFailure image_not_found. */
export function parseReference(image: string): Reference {
  const refuse = (why: string): never => {
    throw new RolloutFailure('image_not_found', `image ${image}: ${why}`);
  };
  const full = fullName(withTag(image));
  const registry = full.slice(0, full.indexOf('/'));
  const [path = '', digest, more] = full.slice(registry.length + 1).split('@');
  const [repository = '', tag, another] = path.split(':');
  if (!REGISTRY.test(registry)) refuse(`"${registry}" is no address of a registry`);
  if (!REPOSITORY.test(repository)) refuse(`"${repository}" is no repository, which has lower-case letters`);
  if (another !== undefined || (tag !== undefined && !TAG.test(tag))) refuse(`"${tag}" is no tag`);
  if (more !== undefined || (digest !== undefined && !DIGEST.test(digest)))
    refuse('the part after @ is no digest, sha256: and 64 hexadecimal digits');
  return {
    registry: /^(?:index\.)?docker\.io$/.test(registry) ? HUB : registry,
    repository,
    reference: digest ?? tag ?? 'latest',
  };
}
