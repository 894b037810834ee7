/** A TCP proxy between two loopback ports that a test can make slow, silent, broken or absent while it runs. */

import { connect, createServer, type Socket } from 'node:net';
import { createListener } from './listener.ts';

export type FaultProxyOptions = {
  /** A port of 127.0.0.1, host and port, or a URL (redis://, http://). */
  target: number | { host: string; port: number } | string;
  port?: number;
};

export type FaultProxy = AsyncDisposable & {
  readonly port: number;
  /** The target's URL with this proxy's address; `tcp://` when the target was not a URL. */
  readonly url: string;
  /** Stops all data in both directions until `resume`; connections stay open, and new ones are accepted and wait too. */
  pause(): void;
  resume(): void;
  /** Resets every open connection; new ones are accepted. */
  cut(): void;
  /** Delays each piece of data by this many milliseconds, in order. 0: no delay. */
  setLatency(ms: number): void;
  /** Stops listening and resets open connections until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** Lets the next `bytes` bytes towards the client pass, then resets its connection. */
  cutAfter(bytes: number): void;
  readonly connections: number;
  /** Connections accepted so far. */
  readonly accepted: number;
};

type Pair = { client: Socket; upstream: Socket };
type State = { paused: boolean; latencyMs: number; cutAfterBytes: number | null };

/** Starts a proxy on a free port of 127.0.0.1 (or the given one). Rejects when it cannot listen. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const target = addressOf(options.target);
  const pairs = new Set<Pair>();
  const state: State = { paused: false, latencyMs: 0, cutAfterBytes: null };
  let accepted = 0;
  const server = createServer({ pauseOnConnect: true, noDelay: true, allowHalfOpen: true }, (client) => {
    accepted++;
    const pair = { client, upstream: connect({ ...target, noDelay: true, allowHalfOpen: true }) };
    pairs.add(pair);
    join(pair, state, () => pairs.delete(pair));
  });
  const cut = () => {
    for (const { client, upstream } of pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  };
  const { open: accept, shut, port: portOf } = createListener(server, { port: options.port }, cut);
  const setPaused = (paused: boolean) => {
    state.paused = paused;
    for (const { client, upstream } of pairs) {
      for (const socket of [client, upstream]) paused ? socket.pause() : socket.resume();
    }
  };
  await accept();
  const port = portOf();
  return {
    port,
    url: urlOf(options.target, port),
    pause: () => setPaused(true),
    resume: () => setPaused(false),
    cut,
    setLatency(ms) {
      state.latencyMs = ms;
    },
    cutAfter(bytes) {
      state.cutAfterBytes = bytes;
    },
    refuse: () => shut(),
    accept,
    get connections() {
      return pairs.size;
    },
    get accepted() {
      return accepted;
    },
    [Symbol.asyncDispose]: () => shut(),
  };
}

function join(pair: Pair, state: State, forget: () => void): void {
  const { client, upstream } = pair;
  client.on('close', forget);
  relay(client, upstream, state, null);
  relay(upstream, client, state, () => {
    client.resetAndDestroy();
    upstream.destroy();
  });
}

/** Forwards data one way, in order, with the current latency; calls `cut` when the allowed bytes have passed. */
function relay(from: Socket, to: Socket, state: State, cut: (() => void) | null): void {
  from.pause();
  const send = (data: Buffer) => {
    if (to.destroyed) return;
    const left = cut === null ? null : state.cutAfterBytes;
    if (cut !== null && left !== null && data.length >= left) {
      state.cutAfterBytes = null;
      to.write(data.subarray(0, left), cut);
      return;
    }
    if (left !== null) state.cutAfterBytes = left - data.length;
    if (to.write(data)) return;
    from.pause();
    to.once('drain', () => state.paused || from.resume());
  };
  // Timers of equal length fire in order; after the latency was shortened, data must not overtake earlier data.
  let lastDue = 0;
  const later = (act: () => void) => {
    const due = Math.max(performance.now() + state.latencyMs, lastDue);
    lastDue = due;
    const wait = due - performance.now();
    if (wait <= 0) act();
    else setTimeout(act, Math.ceil(wait));
  };
  from.on('data', (data: Buffer) => later(() => send(data)));
  from.on('end', () => later(() => to.end()));
  from.on('error', () => to.destroy());
  // Delayed data must arrive first.
  from.on('close', () => later(() => to.destroySoon()));
  if (!state.paused) from.resume();
}

function addressOf(target: FaultProxyOptions['target']): { host: string; port: number } {
  if (typeof target === 'number') return { host: '127.0.0.1', port: target };
  if (typeof target === 'object') return target;
  const url = new URL(target);
  const standard = url.protocol === 'redis:' ? 6379 : 80;
  return { host: url.hostname, port: Number(url.port) || standard };
}

function urlOf(target: FaultProxyOptions['target'], port: number): string {
  if (typeof target !== 'string') return `tcp://127.0.0.1:${port}`;
  const url = new URL(target);
  url.host = `127.0.0.1:${port}`;
  return url.href.replace(/\/$/, '');
}
