import type { Duplex, Readable } from 'node:stream';
import { createLazy, errorMessage, waitAtMost } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, fileFailure, statusCode } from '../engine/errors.ts';
import type { Engine } from '../engine/settings.ts';
import type { FileChanges } from '../filechanges.ts';
import { joinedStream } from '../joinedstream.ts';
import type { Broker } from '../listening/broker.ts';
import { Listeners } from '../listening/listen.ts';
import { readKills, readWasFull } from '../memorygroup.ts';
import { diskUse } from '../namespaces/diskuse.ts';
import { overlayChanges, readFileStamp } from '../overlay.ts';
import type {
  Container,
  ContainerSpec,
  ContainerState,
  DiskUse,
  ExecOptions,
  ExecResult,
  Listener,
  NewFolder,
  SandboxFile,
} from '../runtime.ts';
import { requireReadable } from './accounts.ts';
import { readSingleFile } from './archive.ts';
import { listChanges, pathKind } from './changes.ts';
import { inTime, isLate, killWithoutEngine } from './deadline.ts';
import { createDemuxer } from './demux.ts';
import { runExec, startExec } from './exec.ts';
import type { FirstProcess, OfContainer } from './firstprocess.ts';
import { killOthers } from './killothers.ts';
import { networkOf } from './network.ts';
import { findGroup, findLayer } from './onhost.ts';
import { putByEngine } from './putfiles.ts';
import { answerAbout } from './stoppedstarts.ts';

export type DockerContainerDeps = {
  docker: Docker;
  engine: Engine;
  broker: Broker;
  /** Null if the first process accepts no requests. */
  first: FirstProcess | null;
  /** Removes the container with this id; never throws. */
  remove(id: string): Promise<void>;
};

const END_WAIT_MS = 30_000;
const KILLED = 137;
/** Exit codes of a container that was ended from outside, and of one whose end the engine missed (Docker, Podman). */
const BY_OTHERS: ReadonlySet<number> = new Set([KILLED, 255, -1]);
/** States of a container that somebody ends through the engine. Podman reports exit code 0 in these states. */
const ENDING: ReadonlySet<string> = new Set(['stopping', 'removing']);
const NEVER = new AbortController().signal;

export class DockerContainer implements Container, OfContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly workdir: string;
  readonly privatePids = true;
  readonly #container: Docker.Container;
  readonly #deps: DockerContainerDeps;
  #disposed: Promise<void> | null = null;
  #hasEnded = false;
  #isEnded = false;
  /** Counters of the kernel, read before the container ends. */
  #counts: { kills: number | null; wasFull: boolean | null } | null = null;
  readonly #layer = createLazy(() => findLayer(this.#container));
  readonly #memory = createLazy(async () => {
    const pid = await this.idlePid();
    return pid === null ? null : findGroup(pid, this.id);
  });
  #killedByLimit = false;
  readonly #listeners = new Listeners();
  /** Number of kills by the watchdog; null: the kernel counts the kills. */
  #watchedKills: number | null = null;

  constructor(id: string, spec: ContainerSpec, deps: DockerContainerDeps) {
    this.id = id;
    this.spec = spec;
    this.workdir = spec.workdir;
    this.#deps = deps;
    this.#container = deps.docker.getContainer(id);
  }

  async open(argv: readonly string[], signal: AbortSignal, user?: string): Promise<Duplex> {
    signal.throwIfAborted();
    const own = user === undefined && (await this.#deps.first?.open(argv));
    if (own) return own;
    await this.#deps.first?.hasStarted();
    const { socket } = await startExec(this.#container, argv, {
      stdin: true,
      ...(user === undefined ? {} : { user }),
    });
    return joinedStream(socket, socket, (see) => void socket.on('data', createDemuxer(see)));
  }

  async exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const { user } = options;
    const { first } = this.#deps;
    const standing = user === undefined && options.standing;
    const own =
      standing === 'last'
        ? await first?.last(argv, options, this)
        : standing && (await first?.run(argv, options, this));
    if (own) return own;
    await first?.hasStarted();
    return runExec(this.#container, argv, options, () => this.killProcesses());
  }

  async listen(onConnection: (socket: Duplex) => void, signal: AbortSignal): Promise<Listener> {
    signal.throwIfAborted();
    const { broker } = this.#deps;
    const network = await networkOf(this.id, await this.idlePid());
    const open = (argv: readonly string[], until: AbortSignal) => this.open(argv, until);
    return this.#listeners.listen({ broker, network, open }, onConnection, signal);
  }

  kill(): Promise<void> {
    return this.#stop(NEVER);
  }

  async ended(): Promise<number> {
    try {
      const { StatusCode } = (await this.#container.wait()) as { StatusCode: number };
      this.#hasEnded = true;
      return StatusCode;
    } catch (error) {
      if (statusCode(error) === 404) return KILLED;
      throw engineFailure(error, 'engine_unreachable', 'waiting for the end of a container');
    }
  }

  async beforeEnd(): Promise<void> {
    this.#counts = { kills: await this.oomKills(), wasFull: await this.wasFull() };
  }

  async putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<void> {
    if (await this.#deps.first?.putFiles(files, signal)) return;
    await putByEngine(this.#container, { files }, signal);
  }

  replaceFolders(folders: readonly NewFolder[], files: readonly SandboxFile[], signal: AbortSignal) {
    return putByEngine(this.#container, { folders, files }, signal);
  }

  async getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null> {
    signal.throwIfAborted();
    let archive: NodeJS.ReadableStream;
    try {
      await requireReadable(this.#container);
      // Podman archives the target of a link, but reports the kind of the link. Only the text of the archive's error shows
      // whether the path or the container is missing.
      if (
        this.#deps.engine === 'podman' &&
        ['folder', 'other'].includes(await pathKind(this.#container, path))
      )
        return null;
      archive = await answerAbout(this.#container, this.#container.getArchive({ path, abortSignal: signal }));
    } catch (error) {
      if (statusCode(error) === 404 && /no such file|could not find the file/i.test(errorMessage(error)))
        return null;
      signal.throwIfAborted();
      throw fileFailure(error, `reading ${path} from a container`);
    }
    return inTime(readSingleFile(archive, path, maxBytes)).catch((error: unknown) => {
      (archive as Readable).destroy();
      throw isLate(error) ? fileFailure(error, `reading ${path} from a container`) : error;
    });
  }

  async end(signal: AbortSignal): Promise<FileChanges> {
    if (!this.#hasEnded) await this.#stop(signal);
    return this.changes();
  }

  async changes(): Promise<FileChanges> {
    const { docker } = this.#deps;
    // The engine's list is used only if this process cannot read the upper directory. An engine compares sizes and times, which code in
    // the container can restore, and reads the whole image.
    const layer = await this.#layer.get();
    if (layer !== null) return overlayChanges([layer]);
    return {
      changes: (look, until) => listChanges(docker, this.id, look, until),
      kindOf: (path) => pathKind(this.#container, path),
      getFile: (path, maxBytes, until) => this.getFile(path, maxBytes, until),
      // The engine follows links inside the container.
      getLinkedFile: (path, maxBytes, until) => this.getFile(path, maxBytes, until),
    };
  }

  async #stop(signal: AbortSignal): Promise<void> {
    void this.#listeners[Symbol.asyncDispose]();
    try {
      await answerAbout(this.#container, this.#container.kill({ signal: 'SIGKILL' })).then(
        () => {
          this.#isEnded = true;
        },
        async (error: unknown) => {
          if (isLate(error)) await killWithoutEngine(this.id);
          // The container may have stopped by itself, which engines report with different codes. `wait` confirms the end.
          else if (![409, 500].includes(statusCode(error) ?? 0)) throw error;
        },
      );
      const { by } = await waitAtMost(this.#container.wait(), END_WAIT_MS, signal);
      if (by === 'timeout') throw new Error(`it still runs after ${END_WAIT_MS / 1000} s`);
      this.#hasEnded = by === 'itself';
    } catch (error) {
      throw engineFailure(error, 'engine_unreachable', 'ending a container');
    }
    signal.throwIfAborted();
  }

  async fileStamp(path: string): Promise<string | null> {
    const layer = await this.#layer.get();
    return layer && readFileStamp(layer.upper, path);
  }

  async diskUse(): Promise<DiskUse | null> {
    const layer = await this.#layer.get();
    return layer && diskUse(layer.upper, await this.idlePid());
  }

  async state(): Promise<ContainerState> {
    try {
      const { State } = await answerAbout(this.#container, this.#container.inspect());
      if (this.#killedByLimit) return 'own_limit';
      if (State.Running) return 'running';
      if (this.#isEnded) return 'exited';
      if (ENDING.has(State.Status)) return 'killed';
      if (!BY_OTHERS.has(State.ExitCode)) return 'exited';
      return State.OOMKilled && State.ExitCode === KILLED ? 'own_limit' : 'killed';
    } catch (error) {
      if (statusCode(error) === 404) return 'gone';
      throw engineFailure(error, 'engine_unreachable', 'asking for the state of a container');
    }
  }

  /** Returns the count of the watchdog or of the control group; null if this process is not on the engine's host. */
  async oomKills(): Promise<number | null> {
    if (this.#watchedKills !== null) return this.#watchedKills;
    if (this.#counts) return this.#counts.kills;
    const group = await this.#memory.get();
    return group && readKills(group);
  }

  async wasFull(): Promise<boolean | null> {
    if (this.#watchedKills !== null) return null;
    if (this.#counts) return this.#counts.wasFull;
    const group = await this.#memory.get();
    return group && readWasFull(group);
  }

  /** Returns the host's id of the container's first process; null if there is none, or if the engine cannot tell. */
  async idlePid(): Promise<number | null> {
    const pid = await answerAbout(this.#container, this.#container.inspect()).then(
      ({ State }) => State.Pid,
      () => 0,
    );
    return pid > 0 ? pid : null;
  }

  countMemoryKill(): void {
    this.#watchedKills = (this.#watchedKills ?? 0) + 1;
  }

  /** Makes the watchdog count kills for memory, instead of the kernel. */
  watch(): void {
    this.#watchedKills ??= 0;
  }

  get watched(): boolean {
    return this.#watchedKills !== null;
  }

  endByLimit(): void {
    this.#killedByLimit = true;
    void this.#listeners[Symbol.asyncDispose]();
    this.#container.kill({ signal: 'SIGKILL' }).catch((error: unknown) => errorMessage(error));
  }

  killProcesses(): Promise<void> {
    return killOthers(this.#container, this.#deps.engine);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#deps.first?.[Symbol.dispose]();
    this.#disposed ??= Promise.all([this.#listeners[Symbol.asyncDispose](), this.#deps.remove(this.id)]).then(
      () => undefined,
    );
    return this.#disposed;
  }
}
