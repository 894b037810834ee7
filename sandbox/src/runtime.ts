/**
 * The interface between the farm and what runs containers. A runtime makes an image ready, starts a container,
 * opens a bash in it on a duplex stream, runs one plain exec, copies files, kills, and lists what it owns.
 * Everything else (the shell protocol, the patch, the evaluation) is written once on top of this.
 */
import type { Duplex } from 'node:stream';
import type { RuntimeName } from '@swefarm/shared';
import type { FileChanges } from './filechanges.ts';

/** The worker for which a container runs: the reaper removes containers without a living owner. */
export type Owner = {
  /** Identity of the farm (its Redis), so that two farms on one host keep apart. */
  farm: string;
  worker: string;
  /** Process id of the worker on this host, with its start time: shows without Redis whether the owner is dead. */
  pid: number;
  pid_started: string;
  rollout_id: string;
  attempt: number;
};

export type Limits = {
  cpus: number;
  memoryBytes: number;
  pids: number;
  /** null: no limit. Runtimes that cannot limit disk say so in `check`. */
  diskBytes: number | null;
};

/** An image that is ready on this node. */
export type ReadyImage = {
  name: string;
  digest: string;
  /** The runtime's own handle. */
  ref: string;
  /** True: it was not on the node and was fetched or unpacked for this caller. */
  pulled?: boolean;
};

export type ContainerSpec = {
  image: ReadyImage;
  role: 'agent' | 'evaluation';
  owner: Owner;
  network: 'none' | 'egress';
  limits: Limits;
  workdir: string;
  /** Added to the image's own environment. */
  env: Record<string, string>;
};

export type ExecOptions = {
  /** Replaces the whole environment when given, so that nothing of the agent's shell is inherited. */
  env?: Record<string, string>;
  cwd?: string;
  stdin?: Uint8Array;
  timeoutMs: number;
  /** Bytes kept of stdout and stderr, head and tail; the middle is dropped as it arrives, not buffered. */
  maxOutputBytes: number;
  /**
   * What lets a runtime spare the engine an exec. `clean`: no code has run in the container yet that would lie about an exit code. `last`:
   * besides, nothing is run there after it, and the container may end with it.
   */
  standing?: 'clean' | 'last';
  signal: AbortSignal;
};

export type ExecResult = {
  /** Null when the time limit or a signal ended it before it could exit. */
  exitCode: number | null;
  timedOut: boolean;
  /** stdout and stderr merged in the order they came. */
  output: Buffer;
  outputBytes: number;
  truncated: boolean;
  /** Of a `last` command that the container ended with: whether the container was there until the command had ended by itself. */
  survived?: boolean;
};

export type SandboxFile = { path: string; content: Uint8Array; mode?: number };

/**
 * Whether a container runs, and why not. `own_limit`: its own memory, process or disk limit ended it. `exited`: its process 1 ended
 * by itself, or the worker ended it with {@link Container.end}. `killed`: somebody outside ended it, which no code inside can do: a
 * signal, an engine or a worker that stopped. `gone`: it was removed.
 */
export type ContainerState = 'running' | 'exited' | 'killed' | 'own_limit' | 'gone';

/** `share`: of the whole file system, by bytes or by inodes, whichever is more. */
export type DiskUse = { bytes: number; share: number };

export interface Container extends AsyncDisposable {
  readonly id: string;
  readonly spec: ContainerSpec;
  /** True: the process table is the container's own, so a process that started after a command belongs to the command. Absent: no. */
  readonly privatePids?: boolean;
  /** Where `spec.workdir` really is: the same path in every container, a folder of its own in the `host` dry run. */
  readonly workdir: string;
  /** A process behind a duplex stream: writes go to its stdin, reads return its merged stdout and stderr. By exec, never attach. */
  open(argv: readonly string[], signal: AbortSignal): Promise<Duplex>;
  /** One command in a clean environment; the exit code comes from the runtime, never from what was printed. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Writes files (absolute paths, parents are made). */
  putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<void>;
  /** A regular file; null when there is none or it is a symlink, folder or device; SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  state(): Promise<ContainerState>;
  /** Number of processes killed for memory so far, where the runtime can tell; else null. */
  oomKills(): Promise<number | null>;
  /** Whether its memory was ever at its own limit, where the runtime can tell; else null. */
  wasFull(): Promise<boolean | null>;
  /** True: the worker enforces the limits, not the kernel, and the counters readable inside are those of other processes. */
  readonly watched?: boolean;
  /**
   * Ends every process but the container's idle one, from outside, without needing a free process slot inside: the last
   * resort against a fork bomb. Shells must be reopened after it.
   */
  killProcesses?(): Promise<void>;
  /**
   * Ends every process, the idle one too. Afterwards nothing can run in it; its files can be read from outside until it is disposed of.
   * Throws RolloutFailure when it cannot make sure of that. Absent: the files are not a container's own.
   */
  end?(signal: AbortSignal): Promise<FileChanges>;
  /** A stamp, read from outside, that changes with every write of the file, even one that code hides; null where it cannot be seen. */
  fileStamp?(path: string): Promise<string | null>;
  /** What it has written to the disk, measured from outside; null where that cannot be seen. */
  diskUse?(): Promise<DiskUse | null>;
  /** Ends every process and removes all traces; never throws, idempotent. */
  [Symbol.asyncDispose](): Promise<void>;
}

export type RuntimeLog = { warn(fields: Record<string, unknown>, message: string): void };

export type RuntimeCheck = {
  usable: boolean;
  version: string | null;
  /** How each resource is limited: `enforced` (by the kernel), `watched` (by a watchdog), `none`. */
  limits: Record<'cpu' | 'memory' | 'pids' | 'disk', 'enforced' | 'watched' | 'none'>;
  /** One line each: what is wrong, and what to do. */
  problems: string[];
  /** Set when it is unusable now and perhaps usable soon: its engine has no socket, or does not answer there. */
  away?: 'no_socket' | 'no_answer';
};

export type OwnedContainer = { id: string; owner: Owner };

export type ImageLine = {
  image: string;
  /** `kept`: in use, pinned or used just now. `changed`: not what the farm pulled under this name. */
  status: 'present' | 'absent' | 'pulled' | 'converted' | 'removed' | 'kept' | 'changed' | 'failed';
  digest?: string;
  bytes?: number;
  path?: string;
  error?: string;
};

/** For `swefarm images`. */
export type ImageInspection = {
  /**
   * `verify`: compare with the digest recorded when the farm pulled it. `instances`: those that use the image, for runtimes whose
   * image files are named after them.
   */
  look(image: string, verify: boolean, instances: readonly string[]): Promise<ImageLine>;
  /** Removes images that the farm pulled, that are not in use and not in `keep`. */
  prune(keep: ReadonlySet<string>): Promise<ImageLine[]>;
};

export interface Runtime extends AsyncDisposable {
  /** `fake`: the runtime of a simulated worker, which starts nothing. */
  readonly name: RuntimeName | 'fake';
  /** True: the model's commands are kept apart from this machine; false: a rollout is a dry run. */
  readonly isolates: boolean;
  /** True: images are fetched to each node, so a rollout best runs where its image is. False: all nodes share them, or there are none. */
  readonly placesByImage: boolean;
  /** Facts for `doctor`; does not throw when the runtime is unusable. */
  check(signal: AbortSignal): Promise<RuntimeCheck>;
  /**
   * Makes the image ready on this node: local first, then pulled or unpacked; single-flight per image.
   * `instanceId` helps runtimes whose image files are named after it.
   * Throws RolloutFailure image_not_found / image_pull / engine_unreachable / node_disk.
   */
  ensureImage(image: string, signal: AbortSignal, instanceId?: string): Promise<ReadyImage>;
  /** The most that one sandbox may have here; absent or null: the kernel accepts any request. */
  most?(): Promise<{ cpus: number } | null>;
  /** Throws RolloutFailure sandbox_start / sandbox_refused / engine_unreachable / node_disk / node_memory. */
  start(spec: ContainerSpec, signal: AbortSignal): Promise<Container>;
  /** Every container of the farm on this host, of this and other workers. */
  listOwned(): Promise<OwnedContainer[]>;
  /** Images on this node, ready to start; absent where the runtime keeps none. */
  images?(): Promise<{ count: number; bytes: number }>;
  /** Free bytes where sandboxes write; null or absent: unknown from here. */
  diskFree?(): Promise<number | null>;
  /** Removes unused images that the farm pulled, while the disk is too full; returns how many. */
  evictImages?(): Promise<number>;
  /** Absent where neither an engine nor .sif files hold the images. */
  readonly inspection?: ImageInspection;
  /** Removes leftovers of dead processes that have no record, where a runtime has such leftovers. */
  sweep?(): Promise<void>;
  /** Removes a container by its id from `listOwned`; no error when it is already gone. */
  remove(id: string): Promise<void>;
}
