/** Names of images, as registries and engines write them. */

/** Adds the tag: without one an engine would pull every tag. */
export function withTag(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return image.includes('@') || last.includes(':') || image.startsWith('sha256:') ? image : `${image}:latest`;
}

/** Adds registry and folder, for the comparison of prefixes: `bash` is `docker.io/library/bash`. */
export function fullName(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (hasRegistry) return image;
  return rest.length > 0 ? `docker.io/${image}` : `docker.io/library/${image}`;
}
