/** Schema of a Harbor task: the data of the task's folder for which other instances have no field. See docs/harbor.md. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

const seconds = z.number().positive().max(MOST.seconds);
/** Name or number of the user that runs commands. If it is absent, the user of the image applies. */
const user = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, {
  error: 'expected the name or the number of a user',
});
const environment = z.record(
  z.string().regex(/^[A-Za-z_]\w*$/, { error: 'expected the name of an environment variable' }),
  z.string().regex(/^[^\0]*$/, { error: 'expected a text without NUL' }),
);

/** Prefix of the names of images that workers build. Nobody can publish such an image: no registry has the name `localhost`. */
export const BUILT_IMAGES = 'localhost/swefarm-harbor/environment:';

const TaskFile = z.object({ base64: z.base64(), executable: z.boolean().default(false) });

/** Command that exits with 0 if a new container is ready. All times are in seconds. */
const Healthcheck = z.object({
  command: z.string().min(1),
  interval_sec: z.number().nonnegative().max(MOST.seconds).default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().nonnegative().max(MOST.seconds).default(0),
  start_interval_sec: z.number().nonnegative().max(MOST.seconds).default(5),
  retries: z.number().int().positive().max(1_000).default(3),
});

const limits = z.object({
  cpus: z.number().positive().max(MOST.cpus).optional(),
  memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
  disk_bytes: z.number().int().positive().max(MOST.bytes).optional(),
});
const network = z.enum(['public', 'no-network']);
const path = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** Container of a verifier that does not share the agent's container. */
const SeparateVerifier = z.object({
  image: z.string().min(1),
  /** Present if workers build the image from the Dockerfile of `folder`. `timeout` is the time limit of the build in seconds. */
  build: z.object({ timeout: seconds, folder: z.enum(['environment', 'tests']) }).optional(),
  /** Whether the image contains `/tests`. Otherwise the worker copies `tests/` into the container. */
  has_tests: z.boolean(),
  network,
  /** Limits of the container. If a limit is absent, the limit of the agent's container applies. */
  limits,
  workdir: path.optional(),
  env: environment,
});

/** File that describes the artifacts of an exported trial. */
const ARTIFACT_MANIFEST = 'manifest.json';
/** Maximum number of artifacts that a task declares. */
export const MOST_ARTIFACTS = 100;

/** Returns whether an artifact can have the path below the folder `artifacts/` of an exported trial. */
export const isArtifactDestination = (path: string): boolean => {
  const parts = path.split('/');
  const isInside = !path.includes('\0') && parts.every((part) => !['', '.', '..'].includes(part));
  return isInside && parts[0] !== ARTIFACT_MANIFEST;
};

/** A file or folder that the worker copies out of the agent's container, and into the container of a separate verifier. */
const HarborArtifact = z.object({
  source: path,
  /** Path below the folder `artifacts/` of an exported trial. */
  destination: z.string().refine(isArtifactDestination, {
    error: `expected a relative path without . and .., and not ${ARTIFACT_MANIFEST}`,
  }),
  /** False for the folder `/logs/artifacts` of a task that does not declare it. */
  declared: z.literal(false).optional(),
  /** Patterns of files to omit, in the syntax of `tar --exclude`. */
  exclude: z.array(z.string()).default([]),
});
export type HarborArtifact = z.infer<typeof HarborArtifact>;

/** Command that runs in the agent's container after the agent, before the worker copies artifacts. */
const CollectHook = z.object({ command: z.string(), timeout: seconds, user: user.optional() });

export const HarborTask = z.object({
  /** Name of the task, such as `org/short`. */
  name: z.string().min(1),
  /** Digest of the folder as Harbor computes it: `sha256:` and 64 hex digits. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  /** Files by path: all of `tests/` and `solution/`, and of `environment/` if a worker builds the image or copies the files. */
  files: z.record(z.string(), TaskFile),
  /** Present if workers build the image from `environment/Dockerfile`. `timeout` is the time limit of the build in seconds. */
  build: z.object({ timeout: seconds }).optional(),
  network,
  /** Limits of the container. If a limit is absent, the limit of the run applies. */
  limits,
  healthcheck: Healthcheck.optional(),
  agent: z.object({ timeout: seconds.optional(), user: user.optional() }),
  /** Additional environment variables of `solution/solve.sh`. */
  solution_env: environment,
  verifier: z.object({
    timeout: seconds,
    user: user.optional(),
    env: environment,
    /** If it is absent, the verifier runs in the agent's container. */
    separate: SeparateVerifier.optional(),
  }),
  collect: z.array(CollectHook).default([]),
  /** The folder `/logs/artifacts` is in the list even if the task does not declare it. */
  artifacts: z
    .array(HarborArtifact)
    .max(MOST_ARTIFACTS + 1)
    .default([]),
  /** Key of the reward if the verifier writes several rewards. If it is absent, the key is `reward` or the only key. */
  reward_key: z.string().optional(),
});
export type HarborTask = z.infer<typeof HarborTask>;
