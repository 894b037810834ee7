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
    'Rollouts at once; auto: as CPUs, memory and disk allow.',
  ),
  runtime: plain(
    z.enum(RUNTIMES),
    'auto',
    'Runtime of sandboxes (docs/running.md#workers); auto: the first that works.',
  ),
  docker_socket: plain<string | null>(
    z.string().min(1),
    null,
    'Socket of the engine; default /var/run/docker.sock.',
    ['DOCKER_HOST'],
  ),
  policy_pause_limit_seconds: plain(
    form.positiveSeconds,
    3600,
    'Seconds until a rollout that waits for a policy update is handed back at no cost.',
  ),
  engine_patience_seconds: plain(
    form.seconds,
    60,
    'Seconds that a starting worker waits for its engine or for disk space.',
  ),
  podman_socket: key<string>(
    z.string().min(1),
    (env) =>
      (env.XDG_RUNTIME_DIR && process.getuid?.() !== 0 ? env.XDG_RUNTIME_DIR : '/run') +
      '/podman/podman.sock',
    "root's, or podman/podman.sock in $XDG_RUNTIME_DIR",
    'Socket of `podman system service`.',
    ['CONTAINER_HOST'],
  ),
  apptainer_images: key<string[]>(
    form.list,
    () => [],
    '',
    'Paths of .sif files or folders with {instance_id} or {image}, separated by commas.',
  ),
  apptainer_command: plain<string | null>(form.path, null, 'Path of apptainer or singularity.'),
  images_dir: key<string>(
    form.path,
    (_env, { state_dir }) => join(String(state_dir), 'images'),
    'images/ in the state folder',
    'Folder of unpacked images (rootfs, apptainer).',
  ),
  parser_image: plain<string | null>(
    form.text,
    null,
    'Image in which programs of datasets read outcomes (docs/running.md#the-parser-image).',
  ),
  image_pulls: plain(form.positiveInteger, 3, 'Images that a worker pulls at once.'),
  image_mirrors: key<string[]>(
    form.list,
    () => [],
    '',
    'Mirrors to try first, separated by commas: docker.io/=mirror.example/hub/.',
  ),
  registry_auth: key<string[]>(
    form.list,
    () => [],
    '',
    'Files with credentials of registries as docker login writes them, read at each pull.',
  ),
  image_disk_watermark: plain(
    form.share,
    0.85,
    'Used share of the image disk above which pulled images are evicted; 1: never.',
  ),
  image_pins: key<string[]>(
    form.list,
    () => [],
    '',
    'Images that are never evicted, separated by commas; * matches anything.',
  ),
  placement: plain(
    z.enum(['auto', 'off']),
    'auto',
    'auto: rollouts of one image go to the same nodes. off: for nodes that share their images.',
  ),
  locality_wait_seconds: plain(
    form.seconds,
    3,
    'Seconds that a queued rollout waits for a node with its image.',
  ),
  scratch_dir: key<string>(
    form.path,
    (env) =>
      join(env.TMPDIR || '/tmp', process.getuid?.() === 0 ? 'swefarm' : `swefarm-${process.getuid?.()}`),
    'swefarm/ in $TMPDIR, without root swefarm-UID/',
    'Folder of running sandboxes, on a fast local disk; it belongs to this user.',
  ),
  node_cpus: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.positiveSeconds]),
    'auto',
    'CPUs for all sandboxes of the node.',
  ),
  node_memory_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Memory for all sandboxes of the node (64G).',
  ),
  node_disk_bytes: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.bytes]),
    'auto',
    'Disk for all sandboxes of the node; auto: free space of scratch_dir.',
  ),
  rollout_cpus: plain(form.positiveSeconds, 0.25, 'CPUs of a rollout, for concurrency auto.'),
  rollout_memory_bytes: key(form.bytes, () => 2 * GIB, '2 GiB', 'Memory of a rollout, for concurrency auto.'),
  rollout_disk_bytes: key(form.bytes, () => GIB, '1 GiB', 'Disk of a rollout, for concurrency auto.'),
  memory_reserve_bytes: key(
    form.bytes,
    () => GIB / 2,
    '512 MiB',
    'Available memory below which the worker claims nothing, until there is twice as much.',
  ),
  engine_gap_ms: plain(form.count, ENGINE_GAP_MS, 'Least milliseconds between two creations of containers.'),
  metrics_port: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.port]),
    0,
    'Port of /metrics and the probes; auto: a free one; 0: none.',
  ),
  metrics_host: plain(form.text, '127.0.0.1', 'Address on which /metrics listens.'),
  metrics_address: plain<string | null>(
    form.text,
    null,
    'Host under which Prometheus reaches /metrics; default: metrics_host or an address of the machine.',
  ),
  drain_grace_seconds: plain(
    form.seconds,
    25,
    'Seconds from SIGTERM to the exit; 10 s before it running rollouts are handed back.',
  ),
  worker_id: key<string>(form.text, newId, 'a fresh id', 'Name of this worker, unique in the farm.'),
  node: key<string>(form.text, form.nodeName, 'host name', 'Name of this node.', [
    'SLURMD_NODENAME',
    'NODE_NAME',
  ]),
  threads: plain(form.positiveInteger, 2, 'Threads that read test logs.'),
  host_rewards: plain(form.flag, false, 'Allow rewards on the runtime host (with --allow-host-reward).'),
  live_turns: plain(form.count, 64, 'Latest turns of a running rollout to store in Redis; 0: none.'),
  exit_when_idle_seconds: plain(form.seconds, 0, 'Exit after so many seconds without work; 0: never.'),
};
