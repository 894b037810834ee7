/** Adds the tag `latest` to a name without tag and digest. Without a tag an engine would pull every tag. */
export function withTag(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return image.includes('@') || last.includes(':') || image.startsWith('sha256:') ? image : `${image}:latest`;
}

/** Adds a missing registry and folder: `bash` becomes `docker.io/library/bash`. */
export function fullName(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (hasRegistry) return image;
  return rest.length > 0 ? `docker.io/${image}` : `docker.io/library/${image}`;
}
