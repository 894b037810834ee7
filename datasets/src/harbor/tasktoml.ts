/** Defines the keys of a Harbor task's `task.toml`, in all versions of the schema up to "1.4" (Harbor 0.25.0). */
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

export const TaskToml = z.strictObject({
  version: z.string().optional(),
  schema_version: z.string().optional(),
  source: z.string().optional(),
  artifacts: z.array(z.unknown()).default([]),
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
      environment: z.record(z.string(), z.unknown()).optional(),
      collect: z.array(z.unknown()).default([]),
      ...network,
    })
    .prefault({}),
  solution: z.strictObject({ env: environment }).prefault({}),
  environment: z
    .strictObject({
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
    })
    .prefault({}),
  steps: z.array(z.unknown()).default([]),
});
export type TaskToml = z.infer<typeof TaskToml>;

/** Features that the farm does not provide: key, reason in errors, and whether a task requests the feature. */
const UNPROVIDED: readonly [key: string, reason: string, asks: (task: TaskToml) => boolean][] = [
  ['steps', 'several steps', ({ steps }) => steps.length > 0],
  ['environment.os', 'Windows', ({ environment }) => environment.os === 'windows'],
  ['environment.gpus', 'GPUs', ({ environment }) => environment.gpus > 0],
  ['environment.tpu', 'TPUs', ({ environment }) => (environment.tpu ?? null) !== null],
  ['environment.mcp_servers', 'MCP servers', ({ environment }) => environment.mcp_servers.length > 0],
  ['environment.skills_dir', 'skills of an agent', ({ environment }) => environment.skills_dir !== undefined],
  [
    'verifier.environment_mode',
    'a separate verifier',
    ({ verifier }) => verifier.environment_mode === 'separate' || verifier.environment !== undefined,
  ],
  ['verifier.collect', 'commands that collect artifacts', ({ verifier }) => verifier.collect.length > 0],
  ...(['environment', 'agent', 'verifier'] as const).map((part): (typeof UNPROVIDED)[number] => [
    `${part}.network_mode`,
    'a network with an allowlist',
    (task) => task[part].network_mode === 'allowlist' || task[part].allowed_hosts.length > 0,
  ]),
  ...(['agent', 'verifier'] as const).map((part): (typeof UNPROVIDED)[number] => [
    `${part}.network_mode`,
    'another network in one phase',
    (task) => (task[part].network_mode ?? networkOf(task)) !== networkOf(task),
  ]),
];

export const unprovidedIn = (task: TaskToml): { key: string; reason: string }[] =>
  UNPROVIDED.filter(([, , asks]) => asks(task)).map(([key, reason]) => ({ key, reason }));

export const networkOf = ({ environment }: TaskToml): 'public' | 'no-network' | 'allowlist' =>
  environment.network_mode ?? (environment.allow_internet === false ? 'no-network' : 'public');

const STEPS_OF_1024 = { K: -1, M: 0, G: 1 } as const;

/** Returns the number of MiB of a text such as `512M` or `2G`, and undefined if there is no text. */
export function mebibytes(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const unit = text.slice(-1).toUpperCase() as keyof typeof STEPS_OF_1024;
  return Number(text.slice(0, -1)) * 1024 ** STEPS_OF_1024[unit];
}
