/** Configuration keys of a worker: its runtime and images, its share of the node, and when it ends. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { newId } from '../records/ids.ts';
import { automatic, count, key, list, optional, plain, seconds, size } from './key.ts';
import { RUNTIMES } from './runtimes.ts';
import * as form from './schema.ts';

export const WORKER_KEYS = {
  concurrency: automatic(form.positiveInteger, 'Rollouts at once; auto: as CPUs, memory and disk allow.'),
  runtime: plain(
    z.enum(RUNTIMES),
    'auto',
    'Runtime of sandboxes (docs/running.md#workers); auto: the first that works.',
  ),
  docker_socket: optional(
    z.string().min(1),
    'Socket of the engine; default /var/run/docker.sock.',
    'DOCKER_HOST',
  ),
  policy_pause_limit_seconds: seconds(
    3600,
    'Seconds until a rollout that waits for a policy update is handed back at no cost.',
  ),
  admission_poll_seconds: seconds(
    2,
    "Seconds between two reads of the metrics of a policy's endpoints, for --admission auto.",
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
    'CONTAINER_HOST',
  ),
  apptainer_images: list(
    'Paths of .sif files or folders with {instance_id} or {image}, separated by commas.',
  ),
  apptainer_command: optional(form.path, 'Path of apptainer or singularity.'),
  images_dir: key<string>(
    form.path,
    (_env, { state_dir }) => join(String(state_dir), 'images'),
    'images/ in the state folder',
    'Folder of unpacked images (rootfs, apptainer).',
  ),
  parser_image: optional(
    form.text,
    'Image in which programs of datasets read outcomes (docs/running.md#the-parser-image).',
  ),
  image_pulls: count(3, 'Images that a worker pulls at once.'),
  image_mirrors: list('Mirrors to try first, separated by commas: docker.io/=mirror.example/hub/.'),
  registry_auth: list('Files with credentials of registries as docker login writes them, read at each pull.'),
  registry_ca: optional(
    form.path,
    'File in PEM of an authority for registries, beside the public ones (rootfs, convert).',
  ),
  registry_http: list('Registries without TLS (host:port), separated by commas; loopback needs no entry.'),
  image_blobs_dir: optional(
    form.path,
    'Folder on a shared file system that stores layers of registries for all nodes; absent: each node fetches.',
  ),
  image_disk_watermark: plain(
    form.share,
    0.85,
    'Used share of the image disk above which pulled images are evicted; 1: never.',
  ),
  image_pins: list('Images that are never evicted, separated by commas; * matches anything.'),
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
  node_cpus: automatic(form.cpus, 'CPUs for all sandboxes of the node.'),
  node_memory_bytes: automatic(form.bytes, 'Memory for all sandboxes of the node (64G).'),
  node_disk_bytes: automatic(
    form.bytes,
    'Disk for all sandboxes of the node; auto: free space of scratch_dir.',
  ),
  rollout_cpus: plain(form.cpus, 0.25, 'CPUs of a rollout, for concurrency auto.'),
  rollout_memory_bytes: size('2 GiB', 'Memory of a rollout, for concurrency auto.'),
  rollout_disk_bytes: size('1 GiB', 'Disk of a rollout, for concurrency auto.'),
  memory_reserve_bytes: size(
    '512 MiB',
    'Available memory below which the worker claims nothing, until there is twice as much.',
  ),
  engine_gap_ms: plain(form.count, 25, 'Least milliseconds between two creations of containers.'),
  metrics_port: plain<number | 'auto'>(
    z.union([z.literal('auto'), form.port]),
    0,
    'Port of /metrics and the probes; auto: a free one; 0: none.',
  ),
  metrics_host: plain(form.text, '127.0.0.1', 'Address on which /metrics listens.'),
  metrics_address: optional(
    form.text,
    'Host under which Prometheus reaches /metrics; default: metrics_host or an address of the machine.',
  ),
  drain_grace_seconds: plain(
    form.seconds,
    25,
    'Seconds from SIGTERM to the exit; 10 s before it running rollouts are handed back.',
  ),
  worker_id: key<string>(form.text, newId, 'a fresh id', 'Name of this worker, unique in the farm.'),
  node: key<string>(form.text, hostname, 'host name', 'Name of this node.', 'SLURMD_NODENAME', 'NODE_NAME'),
  threads: count(2, 'Threads that read test logs.'),
  host_rewards: plain(form.flag, false, 'Allow rewards on the runtime host (with --allow-host-reward).'),
  live_turns: plain(form.count, 64, 'Latest turns of a running rollout to store in Redis; 0: none.'),
  exit_when_idle_seconds: plain(form.seconds, 0, 'Exit after so many seconds without work; 0: never.'),
};
