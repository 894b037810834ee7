/** Reads the verifier of a Harbor task: its container, the artifacts that it gets, and the commands that collect them. */
import type { HarborTask } from '@swefarm/shared';
import type { FieldReader } from '../fields/fields.ts';
import { hasDockerfile, imageOf, type TaskImage } from './image.ts';
import { limitsOf } from './limits.ts';
import type { TaskFiles } from './taskfiles.ts';
import { destinationOf, isSeparate, networkOf, type TaskToml, withoutSlashes } from './tasktoml.ts';
import { resolved } from './variables.ts';

type TaskEnv = Readonly<Record<string, string>> | undefined;

/** Folder whose content Harbor copies for every task. */
const CONVENTION = '/logs/artifacts';

export const userOf = (user: string | number | undefined): { user?: string } =>
  user === undefined ? {} : { user: String(user) };

/** Returns whether the image of the verifier contains `/tests`, as in Harbor. */
export const bringsTests = (toml: TaskToml, files: TaskFiles): boolean =>
  isSeparate(toml) &&
  (toml.verifier.environment?.docker_image !== undefined || hasDockerfile(files, 'tests'));

/** @param image image of the agent's container */
export function verifierOf(
  read: FieldReader,
  toml: TaskToml,
  { files, image, taskEnv }: { files: TaskFiles; image: TaskImage; taskEnv: TaskEnv },
): HarborTask['verifier'] {
  const { timeout_sec, user, env } = toml.verifier;
  return {
    timeout: timeout_sec,
    ...userOf(user),
    env: resolved(read, 'verifier.env', env, taskEnv),
    ...(isSeparate(toml) ? { separate: separateOf(read, toml, { files, image, taskEnv }) } : {}),
  };
}

/** Harbor takes the image from `verifier.environment`, else from `tests/Dockerfile`, else from `environment`. */
function separateOf(
  read: FieldReader,
  toml: TaskToml,
  { files, image, taskEnv }: { files: TaskFiles; image: TaskImage; taskEnv: TaskEnv },
): NonNullable<HarborTask['verifier']['separate']> {
  const own = toml.verifier.environment;
  const key = own ? 'verifier.environment' : 'environment';
  const environment = own ?? toml.environment;
  const hasTests = bringsTests(toml, files);
  const named = own?.docker_image === undefined ? {} : { docker_image: own.docker_image };
  const used = hasTests ? imageOf(read, 'verifier.environment', named, files, 'tests') : image;
  const folder = hasTests ? 'tests' : 'environment';
  const { workdir, build_timeout_sec: timeout } = environment;
  return {
    image: used.name,
    ...(used.build ? { build: { timeout, folder } } : {}),
    has_tests: hasTests,
    network:
      (toml.verifier.network_mode ?? networkOf(environment)) === 'no-network' ? 'no-network' : 'public',
    limits: limitsOf(read, key, environment),
    ...(workdir === undefined ? {} : { workdir }),
    env: resolved(read, `${key}.env`, environment.env, taskEnv),
  };
}

export const collectOf = ({ verifier }: TaskToml): HarborTask['collect'] =>
  verifier.collect.map(({ command, timeout_sec, user }) => ({
    command,
    timeout: timeout_sec,
    ...userOf(user),
  }));

/** Returns the artifacts of the task. `/logs/artifacts` comes first unless the task declares the folder. */
export function artifactsOf({ artifacts }: TaskToml): HarborTask['artifacts'] {
  const declared = artifacts.map((artifact) => ({
    source: `/${withoutSlashes(artifact.source)}`,
    destination: destinationOf(artifact),
    exclude: artifact.exclude,
  }));
  if (declared.some(({ source }) => source === CONVENTION)) return declared;
  return [
    { source: CONVENTION, destination: CONVENTION.slice(1), declared: false, exclude: [] },
    ...declared,
  ];
}
