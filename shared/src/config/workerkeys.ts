/** Configuration keys of a worker: its runtime and images, its share of the node, and when it ends. */
import { join } from 'node:path';
import { z } from 'zod';
import { newId } from '../records/ids.ts';
import { key, plain } from './key.ts';
import { RUNTIMES } from './runtimes.ts';
import * as form from './schema.ts';

const GIB = 1024 ** 3;
const ENGINE_GAP_MS = 25;
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
    'What runs containers; auto: the first that works of docker, podman, apptainer (where apptainer_images is set) and rootfs. host has no isolation and is for dry runs.',
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
    'Seconds that a rollout waits for a policy that does not serve (updating or asleep, by the clock of Redis). After that it is handed back at no cost, and starts again when the policy serves.',
  ),
  engine_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that a starting worker waits for a container engine that does not answer (with runtime auto: one that has a socket), or for free space on the disk of its sandboxes.',
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
    'Where .sif files or unpacked images are: paths with {instance_id} or {image}, separated by commas, such as /shared/sif/{instance_id}.sif.',
  ),
  apptainer_command: plain<string | null>(
    form.path,
    null,
    'Path of apptainer or singularity, when it is not in PATH.',
  ),
  images_dir: key<string>(
    form.path,
    (_env, { state_dir }) => join(String(state_dir), 'images'),
    'images/ in the state folder',
    'Folder for the unpacked images of the runtimes rootfs and apptainer; other users cannot read it.',
  ),
  parser_image: plain<string | null>(
    form.text,
    null,
    'Image with python3, and the package multi-swe-bench for Multi-SWE, in which programs of datasets read the outcomes of tests: any name that the runtime takes. Without it such rollouts fail before they begin.',
  ),
  image_pulls: plain(form.positiveInteger, 3, 'Images that a worker pulls at the same time.'),
  image_mirrors: key<string[]>(
    form.list,
    () => [],
    '',
    'Mirrors that are tried first: PREFIX=PREFIX, separated by commas, such as docker.io/=mirror.example/hub/.',
  ),
  registry_auth: key<string[]>(
    form.list,
    () => [],
    '',
    'Files with credentials of registries, separated by commas, as docker login writes them ({"auths": …}); read at each pull. Engines pull with them.',
  ),
  image_disk_watermark: plain(
    form.share,
    0.85,
    'Used share (0 to 1) of the disk of the engine or of images_dir above which images that the farm pulled are removed, longest unused first; 1: never.',
  ),
  image_pins: key<string[]>(
    form.list,
    () => [],
    '',
    'Images that are never removed, separated by commas; * matches anything.',
  ),
  placement: plain(
    z.enum(['auto', 'off']),
    'auto',
    'auto: rollouts of one image go to the same nodes. off: for nodes that all read the same images (automatic with apptainer_images that need no unpacking).',
  ),
  locality_wait_seconds: plain(
    form.seconds,
    3,
    'Seconds in the queue that a rollout waits for a node that has its image.',
  ),
  scratch_dir: key<string>(
    form.path,
    (env) =>
      join(env.TMPDIR || '/tmp', process.getuid?.() === 0 ? 'swefarm' : `swefarm-${process.getuid?.()}`),
    'swefarm/ in $TMPDIR, without root swefarm-UID/',
    'Folder for the writable layers and files of running sandboxes, on a fast local disk. It belongs to this user alone; a folder of another user is refused.',
  ),
  node_cpus: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.positiveSeconds]),
    'auto',
    'CPUs that all sandboxes of the node may use.',
  ),
  node_memory_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Memory that all sandboxes of the node may use. Takes units (64G).',
  ),
  node_disk_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Disk that all sandboxes of the node may use; auto: what is free in scratch_dir at the start. Takes units (200G).',
  ),
  rollout_cpus: plain(
    form.positiveSeconds,
    0.25,
    'CPUs that are counted for one rollout when concurrency is auto; a rollout mostly waits for the model.',
  ),
  rollout_memory_bytes: key(
    form.bytes,
    () => 2 * GIB,
    '2 GiB',
    'Memory that is counted for one rollout when concurrency is auto.',
  ),
  rollout_disk_bytes: key(
    form.bytes,
    () => GIB,
    '1 GiB',
    'Disk that is counted for one rollout when concurrency is auto.',
  ),
  memory_reserve_bytes: key(
    form.bytes,
    () => GIB / 2,
    '512 MiB',
    'Available memory of the node below which the worker claims nothing more, until there is twice as much. 0: no such limit.',
  ),
  engine_gap_ms: plain(
    form.count,
    ENGINE_GAP_MS,
    'Least milliseconds between two containers that this worker asks its engine to create, at most 8 at a time.',
  ),
  metrics_port: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.port]),
    0,
    'Port of /metrics and of the probes /readyz, /livez and /healthz; auto: any free one, which the gateway tells Prometheus; 0: none.',
  ),
  metrics_host: plain(form.text, '127.0.0.1', 'Address on which /metrics listens; 0.0.0.0: all.'),
  metrics_address: plain<string | null>(
    form.text,
    null,
    'Host under which Prometheus reaches /metrics; default metrics_host, or an address of this machine when that is 0.0.0.0.',
  ),
  drain_grace_seconds: plain(
    form.seconds,
    25,
    'Seconds from SIGTERM to the exit (at least 1). Rollouts that still run are handed back 10 s before the end (of a short grace: after its first fifth), and their containers are removed.',
  ),
  worker_id: key<string>(
    form.text,
    newId,
    'a fresh id',
    'Name of this worker process; no other worker may have it.',
  ),
  node: key<string>(form.text, form.nodeName, 'host name', 'Name of this node.', [
    'SLURMD_NODENAME',
    'NODE_NAME',
  ]),
  threads: plain(form.positiveInteger, 2, 'Threads that read test logs.'),
  host_rewards: plain(
    form.flag,
    false,
    'Allow rewards for the runtime host, for runs that ask for them too (--allow-host-reward).',
  ),
  live_turns: plain(
    form.count,
    64,
    'How many of the latest turns of a running rollout can be followed live (at most 16 KiB each in Redis); 0: none.',
  ),
  exit_when_idle_seconds: plain(
    form.seconds,
    0,
    'Exit after so many seconds without work, for batch schedulers; 0: never.',
  ),
};
