/** A Harbor task: what a rollout needs of the task's folder beyond the fields that all instances have. docs/harbor.md describes the use. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

const seconds = z.number().positive().max(MOST.seconds);
/** User of commands: a name or a number; absent: the user of the image. */
const user = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, {
  error: 'expected the name or the number of a user',
});
const environment = z.record(
  z.string().regex(/^[A-Za-z_]\w*$/, { error: 'expected the name of an environment variable' }),
  z.string().regex(/^[^\0]*$/, { error: 'expected a text without NUL' }),
);

/** Start of the names of images that workers build. No registry has the name `localhost`, so that nobody can publish such an image. */
export const BUILT_IMAGES = 'localhost/swefarm-harbor/environment:';

/** A file of the task's folder. */
const TaskFile = z.object({ base64: z.base64(), executable: z.boolean().default(false) });

/** Command that shows whether a new container is ready. All times are in seconds. */
const Healthcheck = z.object({
  command: z.string().min(1),
  interval_sec: z.number().nonnegative().max(MOST.seconds).default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().nonnegative().max(MOST.seconds).default(0),
  start_interval_sec: z.number().nonnegative().max(MOST.seconds).default(5),
  retries: z.number().int().positive().max(1_000).default(3),
});

export const HarborTask = z.object({
  /** Name of the task, such as `org/short`. */
  name: z.string().min(1),
  /** Digest of the folder as Harbor computes it: `sha256:` and 64 hex digits. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  /** Files below `tests/` and `solution/`, and of `environment/` if the image is built or the files are copied, by path. */
  files: z.record(z.string(), TaskFile),
  /** Set if the image is built from `environment/Dockerfile`. `timeout`: of the build, in seconds. */
  build: z.object({ timeout: seconds }).optional(),
  network: z.enum(['public', 'no-network']),
  /** Limits of the container; absent: those of the run. */
  limits: z.object({
    cpus: z.number().positive().max(MOST.cpus).optional(),
    memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
    disk_bytes: z.number().int().positive().max(MOST.bytes).optional(),
  }),
  healthcheck: Healthcheck.optional(),
  agent: z.object({ timeout: seconds.optional(), user: user.optional() }),
  /** Variables of `solution/solve.sh`, beside those of the environment. */
  solution_env: environment,
  verifier: z.object({ timeout: seconds, user: user.optional(), env: environment }),
  /** Key of the reward among several; absent: `reward`, or the only key. */
  reward_key: z.string().optional(),
});
export type HarborTask = z.infer<typeof HarborTask>;
