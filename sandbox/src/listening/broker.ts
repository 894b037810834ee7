/** Opens listening sockets of this process in the network namespaces of sandboxes. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { untilAborted } from '@swefarm/shared';

const BROKER = fileURLToPath(new URL('./broker.cjs', import.meta.url));
const INSIDE = fileURLToPath(new URL('./inside.cjs', import.meta.url));
const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

type Answer = { id: number; port?: number; error?: string };
type Waiting = { resolve(server: Server): void; reject(error: Error): void };

/**
 * Starts its process (`broker.cjs`) at the first request, because most workers never need it. The process ends with the worker. The disposal
 * ends the process; opened sockets stay open.
 */
export class Broker implements Disposable {
  #process: ChildProcess | null = null;
  #last = 0;
  readonly #waiting = new Map<number, Waiting>();

  /**
   * Listens at a free port of 127.0.0.1 in a network namespace. Rejects if this user may not enter the namespace, and with the signal's
   * reason.
   * @param enter options of nsenter; the files that they name must stay open until the result
   */
  async listen(enter: readonly string[], signal: AbortSignal): Promise<Server> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Server>();
    const id = ++this.#last;
    this.#waiting.set(id, { resolve, reject });
    const broker = this.#process ?? this.#open();
    const argv = ['nsenter', ...enter, '--', process.execPath, INSIDE];
    broker.send({ id, argv }, (error) => error && this.#waiting.get(id)?.reject(error));
    try {
      return await untilAborted(promise, signal);
    } catch (error) {
      promise.then((late) => late.close()).catch(() => undefined);
      throw error;
    }
  }

  #open(): ChildProcess {
    const stdio = ['ignore', 'ignore', 'ignore', 'ipc'] as const;
    const broker = spawn(process.execPath, [BROKER], { stdio: [...stdio], env: ENVIRONMENT, cwd: '/' });
    const lost = (): void => {
      if (this.#process === broker) this.#process = null;
      for (const { reject } of this.#waiting.values())
        reject(new Error('the process that listens has ended'));
      this.#waiting.clear();
    };
    broker.once('exit', lost);
    broker.once('error', lost);
    broker.on('message', (answer, server) => this.#receive(answer as Answer, server as Server | undefined));
    // The process must not prolong the life of the worker.
    broker.unref();
    broker.channel?.unref();
    this.#process = broker;
    return broker;
  }

  #receive({ id, error }: Answer, server: Server | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (server && waiting) waiting.resolve(server);
    else waiting?.reject(new Error(error ?? 'no socket was passed'));
  }

  [Symbol.dispose](): void {
    if (this.#process?.connected) this.#process.disconnect();
    this.#process = null;
  }
}
