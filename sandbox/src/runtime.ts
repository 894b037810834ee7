/** The interface of container runtimes. The shell protocol, the patch and the evaluation use only this interface. */
import type { Duplex } from 'node:stream';
import type { RuntimeName } from '@swefarm/shared';
import type { FileChanges } from './filechanges.ts';

/** The search path of commands whose environment has none. */
export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The worker for which a container runs: the reaper removes containers without a living owner. */
export type Owner = {
  /** Identity of the farm (its Redis), for hosts with two farms. */
  farm: string;
  worker: string;
  /** The worker's process id on this host. With its start time it shows without Redis whether the owner is dead. */
  pid: number;
  pid_started: string;
  rollout_id: string;
  attempt: number;
};

export type Limits = {
  cpus: number;
  memoryBytes: number;
  pids: number;
  /** Null: no limit. `check` reports runtimes that cannot limit disk. */
  diskBytes: number | null;
};

export type ReadyImage = {
  name: string;
  digest: string;
  ref: string;
  /** User of the image's configuration; absent if the configuration names no user. */
  user?: string;
  /** Working folder of the image's configuration; absent if the configuration names no folder. */
  workdir?: string;
  /** ENTRYPOINT of the image's configuration. No runtime runs the entrypoint. */
  entrypoint?: readonly string[];
  /** True if the image was fetched, built or unpacked for this caller. */
  pulled?: boolean;
};

/** Describes the build of an image from a folder with a Dockerfile. */
export type ImageBuild = {
  name: string;
  /** Files of the folder. The keys are paths relative to the folder. */
  files: ReadonlyMap<string, { content: Uint8Array; executable: boolean }>;
  timeoutMs: number;
  /** Limits of each build step. */
  limits: Pick<Limits, 'cpus' | 'memoryBytes'>;
};

export type ContainerSpec = {
  image: ReadyImage;
  role: 'agent' | 'evaluation';
  owner: Owner;
  network: 'none' | 'egress';
  limits: Limits;
  workdir: string;
  env: Record<string, string>;
  /** User of process 1 and of commands without a user. If `user` is absent, the user of the image applies. */
  user?: 'root';
  /** Folders of this machine that code inside can read and cannot write; absent: none. */
  mounts?: readonly Mount[];
};

/** `source` and `target`: absolute paths of this machine and of the container. */
export type Mount = { source: string; target: string };

/** A port of 127.0.0.1 inside a container. Disposing it closes the port and its connections, and so does disposing the container. */
export type Listener = AsyncDisposable & {
  readonly port: number;
  /** Who listens: the worker, in the network of the container; or a program inside, which code inside can kill. */
  readonly by: 'worker' | 'program';
  /** Resolves when nothing listens. Before the disposal this has one of two causes: the container ended, or its program was killed. */
  readonly closed: Promise<void>;
};

export type ExecOptions = {
  /** Replaces the whole environment, so that nothing of the agent's shell is inherited. */
  env?: Record<string, string>;
  cwd?: string;
  /** User of the command, by name or number. If `user` is absent, the default user of the container applies. */
  user?: string;
  stdin?: Uint8Array;
  timeoutMs: number;
  /** Maximum size of the stored output: the middle of a longer output is dropped. */
  maxOutputBytes: number;
  /**
   * Allows a runtime to avoid an exec by the engine. `clean`: no untrusted code has run in the container, so an exit code cannot be
   * forged. `last`: in addition, the command is the container's last, so the container may end with the command.
   */
  standing?: 'clean' | 'last';
  signal: AbortSignal;
};

export type ExecResult = {
  /** Null when the time limit ended the command. */
  exitCode: number | null;
  timedOut: boolean;
  output: Buffer;
  outputBytes: number;
  truncated: boolean;
  /** Set if the container ended with a `last` command: whether the container ran until the command had ended by itself. */
  survived?: boolean;
};

/** A folder to create. `path` is absolute and has one or two components. */
export type NewFolder = { path: string; mode: number };

export type SandboxFile = { path: string; content: Uint8Array; mode?: number };

/**
 * `own_limit`: the memory, process or disk limit of the container ended it. `exited`: process 1 ended by itself, or the worker called
 * {@link Container.end}. `killed`: a signal from outside, or a stop of the engine or the worker, ended the container, which code inside
 * cannot do. `gone`: the container was removed.
 */
export type ContainerState = 'running' | 'exited' | 'killed' | 'own_limit' | 'gone';

/** `share`: share of the file system (0 to 1), by bytes or by inodes, whichever is larger. */
export type DiskUse = { bytes: number; share: number };

export interface Container extends AsyncDisposable {
  readonly id: string;
  readonly spec: ContainerSpec;
  /**
   * True: the container has its own process table, so a process that started after a command belongs to the command. Absent:
   * false.
   */
  readonly privatePids?: boolean;
  /** Real path of `spec.workdir`. The two paths differ only in the `host` runtime. */
  readonly workdir: string;
  /** Starts a process. Writes go to its stdin; reads return its merged stdout and stderr. @param user as in {@link ExecOptions} */
  open(argv: readonly string[], signal: AbortSignal, user?: string): Promise<Duplex>;
  /** Runs one command, by default with the container's environment; the exit code comes from the runtime, never from the output. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Writes files to absolute paths, and makes their folders. */
  putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<void>;
  /**
   * Replaces everything at the paths of `folders` by new folders, then writes `files`. Runs no program of the container and follows no link.
   * The caller has killed all processes except process 1. Throws RolloutFailure sandbox_lost / node_disk. The method is absent if the runtime
   * cannot write from outside.
   */
  replaceFolders?(
    folders: readonly NewFolder[],
    files: readonly SandboxFile[],
    signal: AbortSignal,
  ): Promise<void>;
  /** Reads a regular file; null for anything else. Throws SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  /**
   * Listens at a free port of 127.0.0.1 inside the container, where nothing outside of it can connect, and calls `onConnection` for each
   * connection (at most 256 at once). Works without a network. With network `egress`, runtimes that share the network of this machine
   * (rootfs, apptainer, host) listen at 127.0.0.1 of this machine. Throws RolloutFailure sandbox_start, or sandbox_lost.
   */
  listen(onConnection: (socket: Duplex) => void, signal: AbortSignal): Promise<Listener>;
  state(): Promise<ContainerState>;
  /** Returns the number of processes killed for memory so far; null if the runtime cannot count them. */
  oomKills(): Promise<number | null>;
  /** Returns whether the container ever reached its memory limit; null if the runtime cannot tell. */
  wasFull(): Promise<boolean | null>;
  /** True: the worker enforces the limits, and the counters that are readable inside belong to other processes. */
  readonly watched?: boolean;
  /**
   * Kills every process except process 1, from outside and without a free process slot inside. After the end of a command this ends
   * everything that the command started: processes in other sessions, without parents or without an environment, and fork bombs. It also ends
   * shells, which must be reopened, and listeners whose program is inside. `host`: only processes with the container's mark in their
   * environment, or without an environment in its folder.
   */
  killProcesses(): Promise<void>;
  /**
   * Ends every process. The files stay readable from outside until the disposal. Throws RolloutFailure if processes may remain. Absent:
   * the runtime does not isolate the files.
   */
  end?(signal: AbortSignal): Promise<FileChanges>;
  /** Returns the files that changed so far in a running container. The method is absent if the runtime does not isolate the files. */
  changes?(): Promise<FileChanges>;
  /** Returns a stamp, read from outside, that changes with every write of the file; null if the file is not visible from outside. */
  fileStamp?(path: string): Promise<string | null>;
  /** Returns the disk use, measured from outside; null if it cannot be measured. */
  diskUse?(): Promise<DiskUse | null>;
  /** Removes the container. Never throws; further calls have no effect. */
  [Symbol.asyncDispose](): Promise<void>;
}

export type RuntimeLog = { warn(fields: Record<string, unknown>, message: string): void };

export type RuntimeCheck = {
  usable: boolean;
  version: string | null;
  /** How each resource is limited: `enforced` (by the kernel), `watched` (by the watchdog), `none`. */
  limits: Record<'cpu' | 'memory' | 'pids' | 'disk', 'enforced' | 'watched' | 'none'>;
  /** Lines that each name a problem and the remedy. */
  problems: string[];
  /** Set when the runtime may become usable soon: its engine has no socket, or does not answer. */
  away?: 'no_socket' | 'no_answer';
};

export type OwnedContainer = { id: string; owner: Owner };

export type ImageLine = {
  image: string;
  /** `kept`: in use, pinned or used recently. `changed`: differs from what the farm pulled or converted under this name. */
  status: 'present' | 'absent' | 'pulled' | 'converted' | 'removed' | 'kept' | 'changed' | 'failed';
  digest?: string;
  bytes?: number;
  path?: string;
  error?: string;
};

export type ImageInspection = {
  /**
   * `verify`: compare with the id or hash that the farm recorded. `instances`: instances that use the image, for runtimes whose image files
   * are named after instances.
   */
  look(image: string, verify: boolean, instances: readonly string[]): Promise<ImageLine>;
  /** Removes unused images that the farm pulled and that are not in `needed`. Throws UsageError for .sif files. */
  prune(needed: ReadonlySet<string>): Promise<ImageLine[]>;
};

export interface Runtime extends AsyncDisposable {
  /** `fake`: the runtime of a simulated worker, without containers. */
  readonly name: RuntimeName | 'fake';
  /** True: the model's commands are isolated from this machine. False: a rollout is a dry run. */
  readonly isolates: boolean;
  /**
   * True: images are fetched to each node, so a rollout should run where its image is. False: all nodes share the images, or the
   * runtime has no images.
   */
  readonly placesByImage: boolean;
  /** Checks the runtime for `doctor`. Does not throw if the runtime is unusable. */
  check(signal: AbortSignal): Promise<RuntimeCheck>;
  /**
   * Makes the image ready on this node, once for all callers. `instanceId` is for runtimes whose image files are named after instances.
   * Throws RolloutFailure image_not_found / image_pull / engine_unreachable / node_disk.
   */
  ensureImage(image: string, signal: AbortSignal, instanceId?: string): Promise<ReadyImage>;
  /**
   * Builds an image unless this node has an image of the same name. The method is absent if the runtime cannot build images. Throws
   * RolloutFailure image_build / image_not_built / image_pull / engine_unreachable / node_disk.
   */
  build?(build: ImageBuild, signal: AbortSignal): Promise<void>;
  /** Returns the maximum for one sandbox; absent or null: any request is tried. */
  most?(): Promise<{ cpus: number } | null>;
  /** Starts a container. Throws RolloutFailure sandbox_start / sandbox_refused / engine_unreachable / node_disk / node_memory. */
  start(spec: ContainerSpec, signal: AbortSignal): Promise<Container>;
  /** Lists the containers of all workers on this host, also of other farms. */
  listOwned(): Promise<OwnedContainer[]>;
  /** Returns number and bytes of the images on this node; absent: the runtime does not count them. */
  images?(): Promise<{ count: number; bytes: number }>;
  /** Returns the free bytes on the disk of the sandboxes; null or absent: unknown. */
  diskFree?(): Promise<number | null>;
  /** Removes unused images that the farm pulled or unpacked, while the disk is too full. Returns the number of removed images. */
  evictImages?(): Promise<number>;
  /** Absent if images are neither in an engine nor in .sif files. */
  readonly inspection?: ImageInspection;
  /** Removes leftovers of dead processes without a record; absent: the runtime has no such leftovers. */
  sweep?(): Promise<void>;
  /** Removes a container by its id from `listOwned`; no error if the container is gone. */
  remove(id: string): Promise<void>;
}
