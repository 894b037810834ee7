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

export const HarborTask = z.object({
  /** Name of the task, such as `org/short`. */
  name: z.string().min(1),
  /** Digest of the folder as Harbor computes it: `sha256:` and 64 hex digits. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  /** Files by path: all of `tests/` and `solution/`, and of `environment/` if a worker builds the image or copies the files. */
  files: z.record(z.string(), TaskFile),
  /** Present if workers build the image from `environment/Dockerfile`. `timeout` is the time limit of the build in seconds. */
  build: z.object({ timeout: seconds }).optional(),
  network: z.enum(['public', 'no-network']),
  /** Limits of the container. If a limit is absent, the limit of the run applies. */
  limits: z.object({
    cpus: z.number().positive().max(MOST.cpus).optional(),
    memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
    disk_bytes: z.number().int().positive().max(MOST.bytes).optional(),
  }),
  healthcheck: Healthcheck.optional(),
  agent: z.object({ timeout: seconds.optional(), user: user.optional() }),
  /** Additional environment variables of `solution/solve.sh`. */
  solution_env: environment,
  verifier: z.object({ timeout: seconds, user: user.optional(), env: environment }),
  /** Key of the reward if the verifier writes several rewards. If it is absent, the key is `reward` or the only key. */
  reward_key: z.string().optional(),
});
export type HarborTask = z.infer<typeof HarborTask>;
