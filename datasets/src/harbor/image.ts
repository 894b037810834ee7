/** Chooses the image of a container of a Harbor task: a named image, or an image that workers build from a folder of the task. */
import { createHash } from 'node:crypto';
import { BUILT_IMAGES } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';
import { isImageName, withTag } from '../fields/image.ts';
import { readDockerignore } from './dockerignore.ts';
import { filesBelow, type TaskFiles, textOf } from './taskfiles.ts';
import type { Environment } from './tasktoml.ts';

/** Folder of a task that may contain a Dockerfile. */
export type ImageFolder = 'environment' | 'tests';
export type TaskImage = { name: string; build: boolean; needsFiles: boolean };

export const hasDockerfile = (files: TaskFiles, folder: ImageFolder): boolean =>
  files[`${folder}/Dockerfile`] !== undefined;

/**
 * Returns the image that the table `key` of `task.toml` names. Otherwise, workers build an image, and its name contains the hash of the
 * files of `folder`.
 */
export function imageOf(
  read: FieldReader,
  key: 'environment' | 'verifier.environment',
  { docker_image: named }: Pick<Environment, 'docker_image'>,
  files: TaskFiles,
  folder: ImageFolder,
): TaskImage {
  if (named !== undefined) {
    if (!isImageName(named))
      read.complain(`${key}.docker_image`, 'the name of a container image', named, 'correct task.toml');
    return { name: withTag(named), build: false, needsFiles: !hasDockerfile(files, folder) };
  }
  if (!hasDockerfile(files, folder))
    read.complain(`${folder}/Dockerfile`, 'a Dockerfile', undefined, `add it, or name ${key}.docker_image`);
  const hash = createHash('sha256');
  for (const [name, { base64 = '', executable }] of builtFiles(files, folder))
    hash.update(`${name}\0${executable ? 'x' : '-'}\0${base64}\n`);
  return { name: BUILT_IMAGES + hash.digest('hex'), build: true, needsFiles: true };
}

/** Returns the files of the folder that `.dockerignore` does not exclude from the build. */
export function builtFiles(files: TaskFiles, folder: ImageFolder): ReturnType<typeof filesBelow> {
  const below = `${folder}/`;
  const isIgnored = readDockerignore(textOf(files[`${below}.dockerignore`]) ?? '');
  // The builder reads these two files even if they are excluded, and then removes them from the context.
  const read = [`${below}Dockerfile`, `${below}.dockerignore`];
  return filesBelow(files, below).filter(
    ([name]) => read.includes(name) || !isIgnored(name.slice(below.length)),
  );
}
