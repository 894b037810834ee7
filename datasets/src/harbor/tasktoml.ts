/** Defines the keys of a Harbor task's `task.toml`, in all versions of the schema up to "1.4" (Harbor 0.25.0). */
import { posix } from 'node:path';
import { isArtifactDestination, MOST_ARTIFACTS } from '@swefarm/shared';
import { z } from 'zod';

const seconds = z.number().positive();
const user = z.union([z.string().min(1), z.number().int().nonnegative()]).optional();
const environment = z.record(z.string(), z.string()).default({});
const size = z
  .string()
  .regex(/^\d+(?:\.\d+)?[KMG]$/i, { error: 'expected a size such as 512M or 2G' })
  .optional();
const positive = z.number().positive();

/** Keys that set the network of the environment or of one phase. */
const network = {
  network_mode: z.enum(['public', 'no-network', 'allowlist']).optional(),
  allowed_hosts: z.array(z.string()).default([]),
};

const Environment = z.strictObject({
  build_timeout_sec: seconds.default(600),
  docker_image: z.string().min(1).optional(),
  os: z.enum(['linux', 'windows']).default('linux'),
  cpus: positive.optional(),
  memory_mb: positive.int().optional(),
  storage_mb: positive.int().optional(),
  memory: size,
  storage: size,
  gpus: z.number().int().nonnegative().default(0),
  gpu_types: z.array(z.string()).nullish(),
  tpu: z.unknown().optional(),
  allow_internet: z.boolean().optional(),
  workdir: z
    .string()
    .regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' })
    .optional(),
  healthcheck: z
    .strictObject({
      command: z.string().min(1),
      interval_sec: z.number().nonnegative().optional(),
      timeout_sec: seconds.optional(),
      start_period_sec: z.number().nonnegative().optional(),
      start_interval_sec: z.number().nonnegative().optional(),
      retries: z.number().int().positive().optional(),
    })
    .optional(),
  mcp_servers: z.array(z.unknown()).default([]),
  skills_dir: z.string().optional(),
  env: environment,
  ...network,
});
export type Environment = z.infer<typeof Environment>;

/** `..` is refused, because the path decides where the artifact is in an exported trial. */
const isContained = (path: string): boolean => !/[\0\n\\]/.test(path) && !path.split('/').includes('..');
/** Path in the agent's container. */
const source = z
  .string()
  .refine((path) => path.startsWith('/') && isContained(path) && withoutSlashes(path) !== '', {
    error: 'expected an absolute path without .., and not /',
  });
const destination = z
  .string()
  .refine((path) => !path.startsWith('/') && isContained(path), {
    error: 'expected a relative path without ..',
  })
  .optional();

/** A text is the path of an artifact without further keys. */
const Artifact = z.preprocess(
  (given) => (typeof given === 'string' ? { source: given } : given),
  z
    .strictObject({
      source,
      destination,
      exclude: z.array(z.string()).default([]),
      service: z.string().nullish(),
    })
    .refine((artifact) => isArtifactDestination(destinationOf(artifact)), {
      error: 'expected a path that is neither . nor manifest.json',
      path: ['destination'],
    }),
);

/** Returns the path without `.`, repeated slashes, and slashes at its ends. */
export const withoutSlashes = (path: string): string => posix.normalize(path).replace(/^\/+|\/+$/g, '');

/** Returns the path below the folder `artifacts/` of an exported trial. The default is the path in the container, as in Harbor. */
export const destinationOf = ({
  source: path,
  destination: own,
}: {
  source: string;
  destination?: string | undefined;
}) => withoutSlashes(own || path);

const Collect = z.strictObject({
  command: z.string(),
  service: z.string().default('main'),
  timeout_sec: z.number().min(1).default(60),
  user,
});

export const TaskToml = z.strictObject({
  version: z.string().optional(),
  schema_version: z.string().optional(),
  source: z.string().optional(),
  artifacts: z
    .array(Artifact)
    .max(MOST_ARTIFACTS, { error: `expected at most ${MOST_ARTIFACTS} artifacts` })
    .default([]),
  multi_step_reward_strategy: z.unknown().optional(),
  task: z
    .strictObject({
      name: z.string().regex(/^[^/\s]+\/[^/\s]+$/, { error: 'expected org/short' }),
      version: z.unknown().optional(),
      description: z.string().default(''),
      keywords: z.array(z.string()).default([]),
      authors: z.array(z.unknown()).default([]),
    })
    .optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  agent: z.strictObject({ timeout_sec: seconds.optional(), user, ...network }).prefault({}),
  verifier: z
    .strictObject({
      timeout_sec: seconds.default(600),
      user,
      env: environment,
      environment_mode: z.enum(['shared', 'separate']).optional(),
      environment: Environment.optional(),
      collect: z.array(Collect).default([]),
      ...network,
    })
    .refine(({ environment_mode, environment: own }) => environment_mode !== 'shared' || !own, {
      error: 'expected no environment beside the mode "shared"',
      path: ['environment'],
    })
    .prefault({}),
  solution: z.strictObject({ env: environment }).prefault({}),
  environment: Environment.prefault({}),
  steps: z.array(z.unknown()).default([]),
});
export type TaskToml = z.infer<typeof TaskToml>;

/** Returns whether the verifier has a container of its own. */
export const isSeparate = ({ verifier }: TaskToml): boolean =>
  verifier.environment_mode === 'separate' || verifier.environment !== undefined;

export const networkOf = ({
  network_mode,
  allow_internet,
}: Environment): 'public' | 'no-network' | 'allowlist' =>
  network_mode ?? (allow_internet === false ? 'no-network' : 'public');

const STEPS_OF_1024 = { K: -1, M: 0, G: 1 } as const;

/** Returns the number of MiB of a text such as `512M` or `2G`, and undefined if there is no text. */
export function mebibytes(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const unit = text.slice(-1).toUpperCase() as keyof typeof STEPS_OF_1024;
  return Number(text.slice(0, -1)) * 1024 ** STEPS_OF_1024[unit];
}
