/** Every configuration key, declared once: schema, default, one line of documentation. Names of variable and flag follow. */
import { join } from 'node:path';
import { z } from 'zod';
import { newId } from '../records/ids.ts';
import type { Secret } from '../security/secret.ts';
import { CEILING_KEYS } from './ceilingkeys.ts';
import { type ConfigKey, type Environment, key, plain } from './key.ts';
import { RUNTIMES } from './runtimes.ts';
import * as form from './schema.ts';

const stateDir = (env: Environment): string =>
  env.XDG_STATE_HOME ? join(env.XDG_STATE_HOME, 'swefarm') : form.path.parse('~/.swefarm');

const GIB = 1024 ** 3;
const ENGINE_GAP_MS = 25;

export const COMMON_KEYS = {
  redis_url: plain<Secret | null>(
    form.redisUrl,
    null,
    'Redis: redis://, rediss:// (TLS), redis+sentinel://host:port,…/NAME, redis+cluster://host:port,… (with TLS: rediss+…), the path of a unix socket, or file:/path of the address that `swefarm redis` writes, read again at each reconnect. User and password in it are an ACL user.',
    ['REDIS_URL'],
  ),
  redis_username: plain<string | null>(form.text, null, 'ACL user; wins over the one in the URL.'),
  redis_password: plain<Secret | null>(form.secret, null, 'Password; wins over the one in the URL.'),
  redis_tls_ca: plain<string | null>(form.path, null, 'File of the CA that signed the certificate of Redis.'),
  redis_tls_cert: plain<string | null>(
    form.path,
    null,
    'File of our own certificate, for a Redis that asks its clients for one (tls-auth-clients yes); with redis_tls_key.',
  ),
  redis_tls_key: plain<string | null>(form.path, null, 'File of the private key of redis_tls_cert.'),
  redis_sentinel_username: plain<string | null>(form.text, null, 'ACL user of the Sentinels themselves.'),
  redis_sentinel_password: plain<Secret | null>(form.secret, null, 'Password of the Sentinels themselves.'),
  redis_durability: plain(
    z.enum(['required', 'best_effort']),
    'required',
    'required: no work is given to a Redis that may drop keys (maxmemory-policy) or has no append-only file. best_effort: that is only warned of.',
  ),
  redis_prefix: plain(
    form.redisPrefix,
    '{swefarm}',
    'First part of every key; farms with other prefixes keep apart.',
  ),
  log_level: plain(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'info',
    'Least level that is logged.',
  ),
  log_format: plain(
    z.enum(['auto', 'json', 'pretty']),
    'auto',
    'auto: pretty on a terminal, else JSON lines.',
  ),
  state_dir: key(
    form.path,
    stateDir,
    '$XDG_STATE_HOME/swefarm, else ~/.swefarm',
    'Folder for what outlives a process: a Redis of our own, unpacked images.',
  ),
  artifacts: plain(form.artifactsUrl, 'redis:', 'Where trajectories and reports go: redis: or dir:/path.'),
  artifact_budget_bytes: key(
    form.bytes,
    () => 8 * GIB,
    '8 GiB',
    'Bytes that artifacts may take; at the limit workers stop claiming. Takes units (8G).',
  ),
  artifact_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Seconds that an artifact is kept.',
  ),
  ...CEILING_KEYS,
};

const numberOrAuto = z.union([z.literal('auto'), form.positiveInteger]);

export const WORKER_KEYS = {
  concurrency: plain<number | 'auto'>(
    numberOrAuto,
    'auto',
    'Rollouts at once; auto: what CPUs, memory and disk of the node allow.',
  ),
  runtime: plain(
    z.enum(RUNTIMES),
    'auto',
    'What runs containers; auto: the first that works of docker, podman, apptainer (where apptainer_images is set) and rootfs. host is a dry run.',
  ),
  docker_socket: plain<string | null>(
    z.string().min(1),
    null,
    'Socket of the container engine (path or unix://); default /var/run/docker.sock.',
    ['DOCKER_HOST'],
  ),
  policy_pause_limit_seconds: plain(
    form.positiveSeconds,
    3600,
    'A policy that has not served for longer (updating or asleep, by the clock of Redis) is not waited for: its rollouts are handed back at no cost, and begin when it serves again.',
  ),
  engine_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that a worker waits at start for a container engine that does not answer (with runtime auto: one that has a socket), or for room on the disk of its sandboxes.',
  ),
  podman_socket: key<string>(
    z.string().min(1),
    (env) =>
      (env.XDG_RUNTIME_DIR && process.getuid?.() !== 0 ? env.XDG_RUNTIME_DIR : '/run') +
      '/podman/podman.sock',
    "root's, or podman/podman.sock in $XDG_RUNTIME_DIR",
    'Socket of `podman system service` (path or unix://).',
    ['CONTAINER_HOST'],
  ),
  apptainer_images: key<string[]>(
    form.list,
    () => [],
    '',
    'Where .sif files or unpacked images are: paths with {instance_id} or {image}, separated by commas, e.g. /shared/sif/{instance_id}.sif.',
  ),
  apptainer_command: plain<string | null>(
    form.path,
    null,
    'Path of apptainer or singularity, when it is not where programs are.',
  ),
  images_dir: key<string>(
    form.path,
    (_env, { state_dir }) => join(String(state_dir), 'images'),
    'images/ in the state folder',
    'Unpacked images of the runtimes rootfs and apptainer; closed to other users.',
  ),
  image_pulls: plain(form.positiveInteger, 3, 'Images that a worker fetches at once.'),
  image_mirrors: key<string[]>(
    form.list,
    () => [],
    '',
    'Where images are asked for first: PREFIX=PREFIX, separated by commas, e.g. docker.io/=mirror.example/hub/.',
  ),
  image_disk_watermark: plain(
    form.share,
    0.85,
    'Share of the disk of engine or images_dir (0 to 1) from which on images that the farm brought are removed, longest unused first; 1: never.',
  ),
  image_pins: key<string[]>(
    form.list,
    () => [],
    '',
    'Images that are never removed, separated by commas; * stands for anything.',
  ),
  placement: plain(
    z.enum(['auto', 'off']),
    'auto',
    'auto: rollouts of one image go to the same nodes; off where every node reads the same images (apptainer_images without unpacking does it by itself).',
  ),
  locality_wait_seconds: plain(
    form.seconds,
    3,
    'Seconds from its queueing that a rollout waits for the node that has its image.',
  ),
  scratch_dir: key<string>(
    form.path,
    (env) =>
      join(env.TMPDIR || '/tmp', process.getuid?.() === 0 ? 'swefarm' : `swefarm-${process.getuid?.()}`),
    'swefarm/ in $TMPDIR, without root swefarm-UID/',
    'Writable layers and files of running sandboxes; wants a fast local disk. Made for this user alone; a folder of somebody else is refused.',
  ),
  node_cpus: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.positiveSeconds]),
    'auto',
    'CPUs that sandboxes may use together.',
  ),
  node_memory_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Memory that sandboxes may use together. Takes units (64G).',
  ),
  node_disk_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Disk that sandboxes may use together; auto: what is free in scratch_dir at the start. Takes units (200G).',
  ),
  rollout_cpus: plain(
    form.positiveSeconds,
    0.25,
    'CPUs that a rollout is counted as, when concurrency is auto: most of the time it waits for the model.',
  ),
  rollout_memory_bytes: key(
    form.bytes,
    () => 2 * GIB,
    '2 GiB',
    'Memory that a rollout is counted as, when concurrency is auto.',
  ),
  rollout_disk_bytes: key(
    form.bytes,
    () => GIB,
    '1 GiB',
    'Disk that a rollout is counted as, when concurrency is auto.',
  ),
  memory_reserve_bytes: key(
    form.bytes,
    () => GIB / 2,
    '512 MiB',
    'With less memory available on the node nothing more is claimed; it goes on at twice that. 0: never mind.',
  ),
  engine_gap_ms: plain(
    form.count,
    ENGINE_GAP_MS,
    'Least milliseconds between two creates that this worker asks of its container engine, at most 8 at a time.',
  ),
  metrics_port: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.port]),
    0,
    'Port of /metrics and /healthz; auto: a free one, found through the gateway; 0: none.',
  ),
  metrics_host: plain(form.text, '127.0.0.1', 'Address on which /metrics listens; 0.0.0.0: everywhere.'),
  metrics_address: plain<string | null>(
    form.text,
    null,
    'Host under which Prometheus reaches /metrics; default metrics_host, or an address of this machine when that is 0.0.0.0.',
  ),
  drain_grace_seconds: plain(
    form.seconds,
    25,
    'Seconds from SIGTERM to the exit (at least 1); what still runs is handed back 10 s before, of a short grace after its first fifth, and its containers are removed.',
  ),
  worker_id: key<string>(form.text, newId, 'a fresh id', 'Name of this worker process; must be its own.'),
  node: key<string>(form.text, form.nodeName, 'host name', 'Name of this node.', [
    'SLURMD_NODENAME',
    'NODE_NAME',
  ]),
  threads: plain(form.positiveInteger, 2, 'Threads for reading test logs.'),
  host_rewards: plain(form.flag, false, 'Permits rewards from runtime host when the run asks for them too.'),
  live_turns: plain(
    form.count,
    64,
    'Latest turns of each running rollout that can be followed live (at most 16 KiB each in Redis); 0: none.',
  ),
  exit_when_idle_seconds: plain(
    form.seconds,
    0,
    'End after this many seconds without work (for batch schedulers); 0: stay.',
  ),
};

export const PRODUCER_KEYS = {
  local_workers: plain(form.positiveInteger, 1, 'Workers that `rollout` starts on this machine.'),
  policy_api_key: plain<Secret | null>(
    form.secret,
    null,
    'Key of the policy endpoint; lies in Redis apart from the jobs while the run lives.',
    ['OPENAI_API_KEY'],
  ),
  policy_api_key_origins: key<string[]>(
    form.origins,
    () => [],
    '',
    'Where that key may be sent beside the endpoints of the run itself, separated by commas, e.g. http://gpu7:8000: for endpoints that a policy entry brings. It is never sent elsewhere.',
  ),
  policy_api_key_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Seconds that the key stays in Redis.',
  ),
  redis_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that commands which do something wait for a Redis that does not answer, at start and while they collect; those that only show fail at once.',
  ),
  gateway_host: plain(form.text, '127.0.0.1', 'Address on which `serve` listens.'),
  gateway_port: plain(form.port, 8080, 'Port on which `serve` listens; 0: a free one, which it prints.'),
  gateway_token: plain<Secret | null>(
    form.secret,
    null,
    'Token of the one caller of `serve` that needs no file; without any, `serve` makes one.',
  ),
  gateway_callers: plain<string | null>(
    form.path,
    null,
    'YAML file with the callers of `serve`: a token and settings each (docs/gateway.md).',
  ),
  gateway_anonymous: plain(form.flag, false, 'Lets in who has no token: whoever reaches the port.'),
  gateway_failures: plain(
    z.enum(['collector', 'nemo-rl', 'nemo-rl-sync', 'verl-recipe', 'auto']),
    'auto',
    'How `serve` answers a rollout that could not be judged (docs/gateway.md).',
  ),
  gateway_mask_sample: plain(
    z.enum(['auto', 'honoured', 'ignored']),
    'auto',
    'Whether trainers leave out what `mask_sample` marks; auto: as `gateway_failures` says of each (docs/nemo-gym.md). An entry of gateway_callers has its own as mask_sample.',
  ),
  gateway_max_hold_seconds: plain(
    form.positiveSeconds,
    6 * 3600,
    'Seconds that `serve` holds a call at most.',
  ),
  gateway_grace_seconds: plain(
    form.positiveSeconds,
    20,
    'Seconds in which a trainer whose connection dropped may call again; then its rollout is cancelled.',
  ),
  gateway_collector_grace_seconds: plain(
    form.positiveSeconds,
    120,
    'The same for a collector, whose callers are started again by hand or by a scheduler.',
  ),
  gateway_group_hold_seconds: plain(
    form.positiveSeconds,
    1800,
    'Seconds that a failure is held back from NeMo RL while rollouts of the same prompt run, which it would abandon (docs/nemo-gym.md).',
  ),
  file_sd: plain<string | null>(
    form.path,
    null,
    'File that `serve` keeps for Prometheus (file_sd): what GET /sd answers, for where that cannot be reached.',
  ),
  gateway_max_instances: plain(form.positiveInteger, 10_000, 'Most instances of one `POST /v1/runs`.'),
  gateway_max_group_size: plain(
    form.positiveInteger,
    10_000,
    'Most rollouts of one instance in one `POST /v1/runs`: group_size, oversample and refills together.',
  ),
  gateway_max_rollouts: plain(
    form.positiveInteger,
    1_000_000,
    'Most rollouts of one `POST /v1/runs`, over all its instances.',
  ),
  gateway_max_in_flight: plain<number | null>(
    form.positiveInteger,
    null,
    'Most rollouts that a caller may have without a result; more are answered 429. An entry of gateway_callers has its own as max_in_flight.',
  ),
  gateway_max_requests_per_minute: plain<number | null>(
    form.positiveInteger,
    null,
    'Most requests of a token in a minute; more are answered 429. An entry of gateway_callers has its own as max_requests_per_minute.',
  ),
  gateway_body_bytes: key(form.bytes, () => 64 * 1024 ** 2, '64 MiB', 'Largest body that `serve` reads.'),
};

type Values<Keys> = { readonly [K in keyof Keys]: Keys[K] extends ConfigKey<infer T> ? T : never };
export type CommonConfig = Values<typeof COMMON_KEYS>;
export type WorkerConfig = CommonConfig & Values<typeof WORKER_KEYS>;
export type ProducerConfig = CommonConfig & Values<typeof PRODUCER_KEYS>;
export type ConfigRole = 'worker' | 'producer';

export type { ConfigKey, Environment } from './key.ts';

export const ALL_KEYS: Readonly<Record<string, ConfigKey<unknown>>> = {
  ...COMMON_KEYS,
  ...WORKER_KEYS,
  ...PRODUCER_KEYS,
};

export const keysOf = (role: ConfigRole): Readonly<Record<string, ConfigKey<unknown>>> => ({
  ...COMMON_KEYS,
  ...(role === 'worker' ? WORKER_KEYS : PRODUCER_KEYS),
});

export const envName = (name: string): string => `SWEFARM_${name.toUpperCase()}`;
export const flagName = (name: string): string => `--${name.replaceAll('_', '-')}`;
