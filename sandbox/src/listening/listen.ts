/** Chooses how a worker listens inside a container. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { RolloutFailure } from '@swefarm/shared';
import type { Container, Listener } from '../runtime.ts';
import type { Broker } from './broker.ts';
import { forward } from './forwarder.ts';
import { listenerOf } from './server.ts';

/** The options by which nsenter enters the network of a container. Disposing closes the files that the options name. */
export type Network = Disposable & { enter: readonly string[] };

/** `shared`: the container has the network of this process. `network`: null if this process cannot see the container's network. */
type Inside = 'shared' | { network: Network | null; broker: Broker; open: Container['open'] };

/** The listeners of a container. */
export class Listeners implements AsyncDisposable {
  readonly #open = new Set<Listener>();
  #isClosed = false;

  /** Listens as {@link Container.listen} describes. */
  async listen(
    inside: Inside,
    onConnection: (socket: Duplex) => void,
    signal: AbortSignal,
  ): Promise<Listener> {
    const listener = await openListener(inside, onConnection, signal);
    this.#open.add(listener);
    void listener.closed.then(() => this.#open.delete(listener));
    if (!this.#isClosed && !signal.aborted) return listener;
    await listener[Symbol.asyncDispose]();
    signal.throwIfAborted();
    throw new RolloutFailure('sandbox_lost', 'the container ended while the worker began to listen in it');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#open].map((listener) => listener[Symbol.asyncDispose]()));
  }
}

async function openListener(
  inside: Inside,
  onConnection: (socket: Duplex) => void,
  signal: AbortSignal,
): Promise<Listener> {
  if (inside === 'shared') return listenerOf(await listenHere(), onConnection);
  const { network, broker, open } = inside;
  const server = network && (await enterNetwork(broker, network, signal));
  return server ? listenerOf(server, onConnection) : forward(open, onConnection, signal);
}

async function listenHere(): Promise<Server> {
  const server = createServer();
  await once(server.listen({ port: 0, host: '127.0.0.1' }), 'listening');
  return server;
}

/** Returns null if this process may not enter the network. */
async function enterNetwork(broker: Broker, network: Network, signal: AbortSignal): Promise<Server | null> {
  using entered = network;
  return await broker.listen(entered.enter, signal).catch(() => {
    signal.throwIfAborted();
    return null;
  });
}
