/** One container of an engine: exec streams, plain execs, files, state, and its removal without grace. */
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import type { Duplex, Readable } from 'node:stream';
import { errorMessage, poll, waitAtMost } from '@swefarm/shared';
import type Docker from 'dockerode';
import tar from 'tar-stream';
import { type DiskUse, diskUse } from '../diskuse.ts';
import { engineFailure, statusCode } from '../engine/errors.ts';
import type { Engine } from '../engine/settings.ts';
import type { FileChanges } from '../filechanges.ts';
import { killCommand } from '../kill.ts';
import { type MemoryGroup, readKills, readWasFull } from '../memorygroup.ts';
import { overlayChanges, readFileStamp } from '../overlaychanges.ts';
import type { Container, ContainerSpec, ContainerState, ExecOptions, ExecResult } from '../runtime.ts';
import { requireReadable } from './accounts.ts';
import { readSingleFile } from './archive.ts';
import { listChanges, pathKind } from './changes.ts';
import { inTime, isLate, killWithoutEngine } from './deadline.ts';
import { demuxedDuplex } from './demux.ts';
import { runExec, startExec } from './exec.ts';

export type DockerContainerDeps = {
  docker: Docker;
  engine: Engine;
  /** Removes by id; never throws. */
  remove(id: string): Promise<void>;
};

const KILL_WAIT_MS = 5_000;
const END_WAIT_MS = 30_000;
const ignoreKill = async (): Promise<void> => undefined;

export class DockerContainer implements Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly workdir: string;
  readonly privatePids = true;
  readonly #container: Docker.Container;
  readonly #deps: DockerContainerDeps;
  #disposed: Promise<void> | null = null;
  #memory: Promise<MemoryGroup | null> | null = null;
  #upper: Promise<string | null> | null = null;
  #killedByLimit = false;
  /** Null: without a watchdog the kernel counts. */
  #watchedKills: number | null = null;

  constructor(id: string, spec: ContainerSpec, deps: DockerContainerDeps) {
    this.id = id;
    this.spec = spec;
    this.workdir = spec.workdir;
    this.#deps = deps;
    this.#container = deps.docker.getContainer(id);
  }

  async open(argv: readonly string[], signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted();
    const { socket } = await startExec(this.#container, argv, { stdin: true });
    return demuxedDuplex(socket);
  }

  exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult> {
    return runExec(this.#container, argv, options, async (mark) => {
      await killCommand(
        (line, killOptions) => runExec(this.#container, line, killOptions, ignoreKill),
        { mark, keep: [], privatePids: true },
        () => this.killProcesses(),
      );
    });
  }

  async putFiles(
    files: readonly { path: string; content: Uint8Array; mode?: number }[],
    signal: AbortSignal,
  ): Promise<void> {
    const pack = tar.pack();
    for (const { path, content, mode } of files) {
      pack.entry({ name: path.replace(/^\/+/, ''), mode: mode ?? 0o644 }, Buffer.from(content));
    }
    pack.finalize();
    const chunks: Buffer[] = [];
    for await (const chunk of pack) chunks.push(chunk as Buffer);
    try {
      await requireReadable(this.#container);
      await inTime(this.#container.putArchive(Buffer.concat(chunks), { path: '/', abortSignal: signal }));
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, 'sandbox_lost', 'writing files into a container');
    }
  }

  async getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null> {
    signal.throwIfAborted();
    let archive: NodeJS.ReadableStream;
    try {
      await requireReadable(this.#container);
      // Podman archives the target of a link, but reports the kind of the link itself. Only the words of the archive's error say whether
      // the path or the container is missing.
      if (
        this.#deps.engine === 'podman' &&
        ['folder', 'other'].includes(await pathKind(this.#container, path))
      )
        return null;
      archive = await inTime(this.#container.getArchive({ path, abortSignal: signal }));
    } catch (error) {
      if (statusCode(error) === 404 && /no such file|could not find the file/i.test(errorMessage(error)))
        return null;
      signal.throwIfAborted();
      throw engineFailure(error, 'sandbox_lost', `reading ${path} from a container`);
    }
    return inTime(readSingleFile(archive, path, maxBytes)).catch((error: unknown) => {
      (archive as Readable).destroy();
      throw isLate(error) ? engineFailure(error, 'sandbox_lost', `reading ${path} from a container`) : error;
    });
  }

  async end(signal: AbortSignal): Promise<FileChanges> {
    await this.#stop(signal);
    const { docker } = this.#deps;
    // The engine's list is used only when the upper directory cannot be read from here: an engine compares sizes and times, which the code
    // that writes a file can put back, and it reads the whole image to do so.
    const upper = await this.#upperDir();
    if (upper !== null) return overlayChanges([{ at: '/', upper }]);
    return {
      changes: (look, until) => listChanges(docker, this.id, look, until),
      kindOf: (path) => pathKind(this.#container, path),
      getFile: (path, maxBytes, until) => this.getFile(path, maxBytes, until),
    };
  }

  /** Returns when none of its processes is left. */
  async #stop(signal: AbortSignal): Promise<void> {
    try {
      await inTime(this.#container.kill({ signal: 'SIGKILL' })).catch(async (error: unknown) => {
        if (isLate(error)) await killWithoutEngine(this.id);
        // It may have stopped by itself, for which each engine has its own code: `wait` shows it.
        else if (![409, 500].includes(statusCode(error) ?? 0)) throw error;
      });
      const { by } = await waitAtMost(this.#container.wait(), END_WAIT_MS, signal);
      if (by === 'timeout') throw new Error(`it still runs after ${END_WAIT_MS / 1000} s`);
    } catch (error) {
      throw engineFailure(error, 'engine_unreachable', 'ending a container');
    }
    signal.throwIfAborted();
  }

  async fileStamp(path: string): Promise<string | null> {
    const upper = await this.#upperDir();
    return upper === null ? null : readFileStamp(upper, path);
  }

  async diskUse(): Promise<DiskUse | null> {
    const upper = await this.#upperDir();
    return upper === null ? null : diskUse(upper);
  }

  /** The folder where the engine stores the container's changes, if it can be read from here; else null. */
  #upperDir(): Promise<string | null> {
    this.#upper ??= inTime(this.#container.inspect())
      .then(async (found) => {
        const { GraphDriver } = found as { GraphDriver?: { Data?: { UpperDir?: string } | null } };
        const upper = GraphDriver?.Data?.UpperDir ?? null;
        if (upper !== null) await access(upper, constants.R_OK | constants.X_OK);
        return upper;
      })
      .catch(() => null);
    return this.#upper;
  }

  async state(): Promise<ContainerState> {
    try {
      const { State } = await inTime(this.#container.inspect());
      if (this.#killedByLimit) return 'own_limit';
      if (State.Running) return 'running';
      return State.OOMKilled && State.ExitCode === 137 ? 'own_limit' : 'exited';
    } catch (error) {
      if (statusCode(error) === 404) return 'gone';
      throw engineFailure(error, 'engine_unreachable', 'asking for the state of a container');
    }
  }

  /** From the control group's file where this process shares the host with the engine, or from the watchdog's count; else null. */
  async oomKills(): Promise<number | null> {
    if (this.#watchedKills !== null) return this.#watchedKills;
    const group = await this.#memoryGroup();
    return group && readKills(group);
  }

  async wasFull(): Promise<boolean | null> {
    if (this.#watchedKills !== null) return null;
    const group = await this.#memoryGroup();
    return group && readWasFull(group);
  }

  #memoryGroup(): Promise<MemoryGroup | null> {
    this.#memory ??= this.idlePid().then((pid) => (pid === null ? null : findGroup(pid, this.id)));
    return this.#memory;
  }

  /** The container's first process by its id on the host; null when it has none. */
  async idlePid(): Promise<number | null> {
    const pid = await inTime(this.#container.inspect()).then(
      ({ State }) => State.Pid,
      () => 0,
    );
    return pid > 0 ? pid : null;
  }

  /** Called by the watchdog, where there is one. */
  countMemoryKill(): void {
    this.#watchedKills = (this.#watchedKills ?? 0) + 1;
  }

  /** From here on the watchdog, not the kernel, counts what is killed for its memory. */
  watch(): void {
    this.#watchedKills ??= 0;
  }

  get watched(): boolean {
    return this.#watchedKills !== null;
  }

  /** The watchdog's last resort: its own limit ends the container. */
  endByLimit(): void {
    this.#killedByLimit = true;
    this.#container.kill({ signal: 'SIGKILL' }).catch((error: unknown) => errorMessage(error));
  }

  /**
   * On USR1 the idle process kills everything else, which needs no free process slot. Returns when the processes that ran
   * before are gone: a late kill would hit the shell that is opened next.
   */
  async killProcesses(): Promise<void> {
    try {
      const idle = String((await inTime(this.#container.inspect())).State.Pid);
      const before = new Set((await this.#pids())?.filter((pid) => pid !== idle));
      await inTime(this.#container.kill({ signal: 'SIGUSR1' }));
      const areGone = async (): Promise<boolean> => {
        const now = await this.#pids();
        return now !== null && !now.some((pid) => before.has(pid));
      };
      await poll(areGone, { pauseMs: 20, withinMs: KILL_WAIT_MS });
    } catch (error) {
      // A container that has stopped has no processes left.
      if (statusCode(error) === null) throw engineFailure(error, 'engine_unreachable', 'killing processes');
    }
  }

  /** Ids on the host; null while the engine cannot list them (Podman, when processes come and go too fast). */
  async #pids(): Promise<string[] | null> {
    // For `ps` options Podman runs a `ps` inside, where no process slot may be free; its own format words are answered from outside.
    const [options, title] = this.#deps.engine === 'podman' ? ['hpid', 'HPID'] : ['-eo pid', 'PID'];
    const top: { Titles?: string[]; Processes?: string[][] } = await inTime(
      this.#container.top({ ps_args: options }),
    );
    const column = top.Titles?.indexOf(title) ?? -1;
    return top.Processes?.map((row) => row[column] ?? '') ?? null;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#deps.remove(this.id);
    return this.#disposed;
  }
}

/** A container's control group of memory; null when this process does not see the engine's processes. */
async function findGroup(pid: number, id: string): Promise<MemoryGroup | null> {
  const lines = (await readFile(`/proc/${pid}/cgroup`, 'latin1').catch(() => '')).split('\n');
  // A process with the same id in another process table would not have this container's id in its group.
  if (!lines.some((line) => line.includes(id))) return null;
  const version1 = lines.find((line) => /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:/.test(line));
  if (version1)
    return { folder: `/sys/fs/cgroup/memory${version1.slice(version1.indexOf(':/') + 1)}`, version: 1 };
  const version2 = lines.find((line) => line.startsWith('0::'));
  return version2 ? { folder: `/sys/fs/cgroup${version2.slice(3)}`, version: 2 } : null;
}
