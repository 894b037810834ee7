/**
 * A container of the rootfs or Apptainer runtime. Code inside can change the files at any time, so no path of the container is resolved
 * on the host.
 */
import type { Duplex } from 'node:stream';
import { errorMessage, RolloutFailure, SwefarmError } from '@swefarm/shared';
import type { FileChanges } from '../filechanges.ts';
import { joinedStream } from '../joinedstream.ts';
import { Listeners } from '../listening/listen.ts';
import { readKills, readWasFull } from '../memorygroup.ts';
import { type Layer, overlayChanges, readFileStamp } from '../overlay.ts';
import {
  type Container,
  type ContainerSpec,
  type ContainerState,
  DEFAULT_PATH,
  type DiskUse,
  type ExecOptions,
  type ExecResult,
  type Listener,
  type SandboxFile,
} from '../runtime.ts';
import { type Account, type Accounts, accountOf, ROOT } from './account.ts';
import { type Cgroup, HEADROOM, OWN_PROCESSES } from './cgroups.ts';
import { diskUse } from './diskuse.ts';
import { runEntered } from './enter.ts';
import { replaceFolders } from './outside.ts';
import { killNamespace } from './processes.ts';
import { putFiles } from './putfiles.ts';
import type { RuntimeSetup } from './setup.ts';
import type { Entry, StartedProcess } from './starter.ts';
import type { Supervisor } from './supervisor.ts';

const FILE_TIMEOUT_MS = 60_000;
const NO_FILE = 40;

export type SandboxPlan = Accounts & {
  /** Overlays of the sandbox's tree; the overlay of the root is first. */
  layers: readonly [Layer, ...Layer[]];
  /** bubblewrap's part of the command line that enters the sandbox. */
  enter: readonly string[];
  /** Path of the sandbox's tree in the root folder of process 1. If `tree` is absent, the folder has no programs of the host. */
  tree?: string;
};

export type StartedSandbox = {
  supervisor: Supervisor;
  cgroup: Cgroup | null;
  env: Record<string, string>;
  remove(): Promise<void>;
};

type Context = { cwd: string; env: Record<string, string>; account: Account; shell?: boolean };

export class NamespaceContainer implements Container {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly workdir: string;
  readonly privatePids = true;
  readonly #setup: RuntimeSetup;
  readonly #plan: SandboxPlan;
  readonly #started: StartedSandbox;
  #disposed: Promise<void> | null = null;
  #killedByLimit = false;
  #isEnded = false;
  #watchedKills = 0;
  readonly #listeners = new Listeners();
  readonly replaceFolders?: NonNullable<Container['replaceFolders']>;

  constructor(
    id: string,
    spec: ContainerSpec,
    setup: RuntimeSetup,
    plan: SandboxPlan,
    started: StartedSandbox,
  ) {
    this.id = id;
    this.spec = spec;
    this.workdir = spec.workdir;
    this.#setup = setup;
    this.#plan = plan;
    this.#started = started;
    const { tree } = plan;
    if (tree !== undefined)
      this.replaceFolders = (...given) =>
        replaceFolders({ supervisor: started.supervisor, root: setup.root, tree }, ...given);
    void started.supervisor.ended.then(() => this.#listeners[Symbol.asyncDispose]());
  }

  async open(argv: readonly string[], signal: AbortSignal, user?: string): Promise<Duplex> {
    signal.throwIfAborted();
    const account = await accountOf(this.#plan, user);
    const context = { cwd: this.workdir, env: this.#environment(account), account, shell: true };
    const { output, stdin } = await this.#enter(argv, context, true);
    return joinedStream(output, stdin);
  }

  async exec(argv: readonly string[], options: ExecOptions): Promise<ExecResult> {
    const account = await accountOf(this.#plan, options.user);
    const env = options.env ? { PATH: DEFAULT_PATH, ...options.env } : this.#environment(account);
    return this.#run(argv, { cwd: options.cwd ?? this.workdir, env, account }, options);
  }

  /** Runs a command of the farm as root. */
  #plain(argv: readonly string[], options: Omit<ExecOptions, 'timeoutMs'>): Promise<ExecResult> {
    const context = { cwd: '/', env: { PATH: DEFAULT_PATH, LC_ALL: 'C' }, account: ROOT };
    return this.#run(argv, context, { ...options, timeoutMs: FILE_TIMEOUT_MS });
  }

  async #run(argv: readonly string[], context: Context, options: ExecOptions): Promise<ExecResult> {
    options.signal.throwIfAborted();
    const entered = await this.#enter(argv, context, options.stdin !== undefined);
    return runEntered(entered, this.#started.supervisor, options, () => this.killProcesses());
  }

  #environment({ home }: Account): Record<string, string> {
    return { PATH: DEFAULT_PATH, HOME: home, ...this.#started.env };
  }

  async #enter(
    argv: readonly string[],
    { cwd, env, account, shell = false }: Context,
    stdin: boolean,
  ): Promise<StartedProcess> {
    const { supervisor, cgroup } = this.#started;
    const { starter, filter, root, cgroups } = this.#setup;
    const { enter } = this.#plan;
    if (!supervisor.alive()) throw this.#hasEnded();
    const { uid, gid } = account;
    const as = uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--'];
    const entry: Entry = {
      joins: cgroup?.joins[shell ? 'shell' : 'other'] ?? [],
      pidNamespaceFile: supervisor.pidNamespaceFile,
      filter,
      // The kernel counts the processes of each user namespace separately, so each sandbox has its own count. Root has no limit.
      nproc:
        root || cgroups?.controllers.has('pids')
          ? null
          : this.spec.limits.pids + OWN_PROCESSES + (shell ? 0 : HEADROOM),
    };
    const line = [
      'nsenter',
      ...supervisor.enter,
      ...(root ? [] : ['--preserve-credentials']),
      '--',
      ...enter,
      ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
      '--chdir',
      cwd,
      '--',
      ...as,
      ...argv,
    ];
    const entering = starter.start(line, entry, stdin).catch((error: unknown) => {
      const message = `no process could be started: ${errorMessage(error)}`;
      throw new RolloutFailure('sandbox_lost', message, { cause: error });
    });
    supervisor.retainFiles(entering.then(({ reported }) => reported));
    return entering;
  }

  async listen(onConnection: (socket: Duplex) => void, signal: AbortSignal): Promise<Listener> {
    signal.throwIfAborted();
    const { supervisor } = this.#started;
    if (!supervisor.alive()) throw this.#hasEnded();
    const { broker } = this.#setup;
    const open = (argv: readonly string[], until: AbortSignal) => this.open(argv, until);
    const network = await supervisor.network();
    const inside = network === 'shared' ? network : { network, broker, open };
    return this.#listeners.listen(inside, onConnection, signal);
  }

  #hasEnded(): RolloutFailure {
    return new RolloutFailure('sandbox_lost', `the sandbox ${this.id} has ended`);
  }

  async putFiles(files: readonly SandboxFile[], signal: AbortSignal): Promise<void> {
    await putFiles(files, (argv, stdin) =>
      this.#plain(argv, { maxOutputBytes: 4096, signal, ...(stdin ? { stdin } : {}) }),
    );
  }

  async getFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer | null> {
    const script = `[ -f "$1" ] && ! [ -L "$1" ] || exit ${NO_FILE}; exec 2>/dev/null; exec head -c "$2" -- "$1"`;
    const line = ['/bin/sh', '-c', script, 'sh', path, String(maxBytes + 1)];
    const result = await this.#plain(line, { maxOutputBytes: maxBytes + 1, signal });
    if (result.exitCode === NO_FILE) return null;
    if (result.exitCode !== 0) {
      throw new RolloutFailure(
        'sandbox_lost',
        `reading ${path} from a sandbox ended with ${result.exitCode}`,
      );
    }
    if (result.outputBytes > maxBytes) {
      throw new SwefarmError('file_too_large', `${path} has more than ${maxBytes} bytes`);
    }
    return result.output;
  }

  async state(): Promise<ContainerState> {
    if (this.#disposed) return 'gone';
    // `#killedByLimit` is set before the container dies, so that a failure in between does not count as a loss.
    if (this.#killedByLimit) return 'own_limit';
    if (this.#started.supervisor.alive()) return 'running';
    if (this.#isEnded || this.#started.supervisor.endedByItself()) return 'exited';
    return (await this.oomKills()) && (await this.wasFull()) !== false ? 'own_limit' : 'killed';
  }

  async oomKills(): Promise<number | null> {
    const group = this.#started.cgroup?.memory;
    return group ? ((await readKills(group)) ?? 0) : this.#watchedKills;
  }

  async wasFull(): Promise<boolean | null> {
    const group = this.#started.cgroup?.memory;
    return group ? readWasFull(group) : null;
  }

  async killProcesses(): Promise<void> {
    const { supervisor } = this.#started;
    try {
      await supervisor.killAll();
    } catch (error) {
      if (await killNamespace('pid', supervisor.namespace, supervisor)) return;
      throw new RolloutFailure('sandbox_lost', `processes cannot be killed: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }

  async end(): Promise<FileChanges> {
    const { supervisor } = this.#started;
    this.#isEnded ||= supervisor.alive();
    await supervisor.end();
    if (supervisor.alive())
      throw new RolloutFailure('sandbox_lost', `processes of ${this.id} are still there after it was ended`);
    return this.changes();
  }

  async changes(): Promise<FileChanges> {
    return overlayChanges(this.#plan.layers);
  }

  fileStamp(path: string): Promise<string | null> {
    return readFileStamp(this.#plan.layers[0].upper, path);
  }

  async diskUse(): Promise<DiskUse | null> {
    // Shared memory and the runtime's own files are not measured.
    const { supervisor } = this.#started;
    const init = supervisor.alive() ? supervisor.init : null;
    // Deleted files cannot be assigned to a tree, so the first tree counts them; all trees are on one disk.
    const uses = await Promise.all(
      this.#plan.layers.map(({ upper }, at) => diskUse(upper, at === 0 ? init : null)),
    );
    const known = uses.filter((use) => use !== null);
    if (known.length < uses.length) return null;
    return known.reduce((sum, use) => ({ bytes: sum.bytes + use.bytes, share: sum.share + use.share }));
  }

  countMemoryKill(): void {
    this.#watchedKills++;
  }

  endByLimit(): void {
    this.#killedByLimit = true;
    void this.#started.supervisor.end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposed ??= this.#started.supervisor.end().then(() => this.#started.remove());
    return this.#disposed;
  }
}
