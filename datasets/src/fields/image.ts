/** Names of container images in dataset rows. */

/** Whether an image is a folder or an archive on this machine: a scheme and an absolute path, or the absolute path of a .sif file. */
export const isImagePath = (image: string): boolean =>
  /^((dir|host\+dir|docker-archive|oci|sif):\/[^\n]+|\/[^\n]+\.sif)$/.test(image);

/** Adds the tag `latest` if the tag is missing, so that an image has the same name on every node. A path stays unchanged. */
export function withTag(image: string): string {
  if (isImagePath(image)) return image;
  const name = image.slice(image.lastIndexOf('/') + 1);
  return name.includes(':') || image.includes('@') ? image : `${image}:latest`;
}

export const isImageName = (text: string): boolean => /^[a-z0-9][A-Za-z0-9._:@/-]*$/.test(text);

/** Returns the name that SWE-bench's harness gives the image of an instance. Registries require lower case. */
export const harnessImage = (namespace: string, instanceId: string, separator = '_1776_'): string =>
  `${namespace}/sweb.eval.x86_64.${instanceId.toLowerCase().replaceAll('__', separator)}:latest`;
