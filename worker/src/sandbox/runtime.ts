/**
 * The seam between the farm and whatever runs containers. A runtime makes an image ready, starts a container,
 * opens a bash in it on a duplex stream, runs one plain exec, copies files, kills, and lists what it owns.
 * All else (the shell protocol, the patch, the evaluation) is written once on top of this.
 */
import type { Duplex } from 'node:stream';
import type { RuntimeName } from '@swefarm/shared';
import type { DiskUse } from './diskuse.ts';
import type { FileChanges } from './filechanges.ts';

/** For whom a container runs: the reaper removes what has no living owner. */
export type Owner = {
  /** Identity of the farm (its Redis), so that two farms on one host keep apart. */
  farm: string;
  worker: string;
  /** Process id of the worker on this host, with its start time: dead owners are recognised without Redis. */
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

/** An image that is on this node and cannot be taken away while it is held. */
export type ReadyImage = {
  name: string;
  digest: string;
  /** The runtime's own handle. */
  ref: string;
  /** It was not on the node and had to be fetched or unpacked for this caller. */
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
  /** Kept of stdout+stderr: head and tail, the middle is dropped at the source of the copy, not buffered. */
  maxOutputBytes: number;
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
};

/** Why a container no longer runs. `own_limit`: it was killed by its own memory (or pids) limit. */
export type ContainerState = 'running' | 'exited' | 'own_limit' | 'gone';

export interface Container extends AsyncDisposable {
  readonly id: string;
  readonly spec: ContainerSpec;
  /** The process table is the container's own, so that a process that started since a command is the command's. Absent: no. */
  readonly privatePids?: boolean;
  /** Where `spec.workdir` really is: the same path in every container, a folder of its own in the `host` dry run. */
  readonly workdir: string;
  /** A process on a duplex stream: writes go to its stdin, reads are its stdout and stderr merged. By exec, never attach. */
  open(argv: readonly string[], signal: AbortSignal): Promise<Duplex>;
  /** One command in a clean environment; the exit code comes from the runtime, never from what was printed. */
  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult>;
  /** Writes files (absolute paths, parents are made). */
  putFiles(
    files: readonly { path: string; content: Uint8Array; mode?: number }[],
    signal: AbortSignal,
  ): Promise<void>;
  /** A regular file; null when there is none or it is a symlink, folder or device; SwefarmError file_too_large. */
  getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null>;
  state(): Promise<ContainerState>;
  /** Number of processes killed by the memory limit so far, where the runtime can tell; else null. */
  oomKills(): Promise<number | null>;
  /** True: the worker holds the limits, not the kernel, and the counters that can be read inside are those of other processes. */
  readonly watched?: boolean;
  /**
   * Ends every process but the container's idle one, from outside, without needing a free process slot inside: the last
   * resort against a fork bomb. Shells must be reopened after it.
   */
  killProcesses?(): Promise<void>;
  /**
   * Ends every process, the idle one too: nothing can be run in it any more, only looked at from outside until it is disposed of.
   * Throws RolloutFailure when that cannot be made sure. Absent: the files are not a container's own.
   */
  end?(signal: AbortSignal): Promise<FileChanges>;
  /** A stamp, read from outside, that changes whenever the file is written, whatever is done to hide that; null where it cannot be seen. */
  fileStamp?(path: string): Promise<string | null>;
  /** What it has written to the disk, measured from outside; null where that cannot be seen. */
  diskUse?(): Promise<DiskUse | null>;
  /** Ends every process and removes all traces; never throws, idempotent. */
  [Symbol.asyncDispose](): Promise<void>;
}

export type RuntimeCheck = {
  usable: boolean;
  version: string | null;
  /** What is limited how: `enforced`, `watched` (a watchdog), `none`. */
  limits: Record<'cpu' | 'memory' | 'pids' | 'disk', 'enforced' | 'watched' | 'none'>;
  /** One line each: what is wrong, and what to do. */
  problems: string[];
  /** Not usable now, and perhaps soon: its engine has no socket, or does not answer there. */
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
   * `verify`: compared with the digest recorded when the farm pulled it. `instances`: whose image it is, for runtimes whose
   * images are files named by them.
   */
  look(image: string, verify: boolean, instances: readonly string[]): Promise<ImageLine>;
  /** Removes what the farm pulled, is not used and not in `keep`. */
  prune(keep: ReadonlySet<string>): Promise<ImageLine[]>;
};

export interface Runtime extends AsyncDisposable {
  /** `fake`: a simulated worker's, which starts nothing. */
  readonly name: RuntimeName | 'fake';
  /** Commands of the model are kept apart from this machine; without that a rollout is a dry run. */
  readonly isolates: boolean;
  /** Images are fetched to each node, so rollouts are best run where theirs is; false where all nodes share them, or there are none. */
  readonly placesByImage: boolean;
  /** Facts for `doctor`; does not throw when the runtime is unusable. */
  check(signal: AbortSignal): Promise<RuntimeCheck>;
  /**
   * Makes the image ready on this node: local first, then pulled or unpacked; single-flight per image.
   * `instanceId` helps runtimes whose images are files named by it.
   * Throws RolloutFailure image_not_found / image_pull / engine_unreachable / node_disk.
   */
  ensureImage(image: string, signal: AbortSignal, instanceId?: string): Promise<ReadyImage>;
  /** What one sandbox may have at most here; absent or null: the kernel takes what is asked for. */
  most?(): Promise<{ cpus: number } | null>;
  /** Throws RolloutFailure sandbox_start / sandbox_refused / engine_unreachable / node_disk / node_memory. */
  start(spec: ContainerSpec, signal: AbortSignal): Promise<Container>;
  /** Every container of the farm on this host, of this and other workers. */
  listOwned(): Promise<OwnedContainer[]>;
  /** Images on this node, ready to start; absent where the runtime keeps none. */
  images?(): Promise<{ count: number; bytes: number }>;
  /** Bytes free where sandboxes write; null, or absent: that cannot be seen from here. */
  diskFree?(): Promise<number | null>;
  /** Removes images that the farm pulled and nobody uses while the disk is too full; returns how many. */
  evictImages?(): Promise<number>;
  /** Absent where no engine keeps them. */
  readonly inspection?: ImageInspection;
  /** Removes what dead processes left and no record names, where a runtime keeps such things. */
  sweep?(): Promise<void>;
  /** Removes by id what `listOwned` showed; no error when it is already gone. */
  remove(id: string): Promise<void>;
}
