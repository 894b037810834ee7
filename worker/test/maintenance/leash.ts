/** A worker's way to Redis that lets so many commands through and then none: a kill, or a stop, between two of them. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Leash = AsyncDisposable & {
  /** Redis, as whoever is on the leash is to reach it. */
  readonly url: string;
  /** From now on so many commands pass, over all connections; what comes after them is held back. */
  after(commands: number): void;
  /** Commands that passed since then. */
  passed(): number;
  /** Resolves when a command is held back. */
  readonly tight: Promise<void>;
  /** What was held back goes through, and all that follows. */
  release(): void;
  /** Whoever was on it is dead: what was held back is never said. */
  cut(): void;
};

type Line = { client: Socket; server: Socket; held: Buffer[] };

export async function startLeash(redisUrl: string): Promise<Leash> {
  const target = new URL(redisUrl);
  const lines = new Set<Line>();
  let left = Number.POSITIVE_INFINITY;
  let passed = 0;
  let tighten = (): void => undefined;
  const tight = new Promise<void>((resolve) => {
    tighten = resolve;
  });
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    const line: Line = { client, server, held: [] };
    lines.add(line);
    server.pipe(client);
    let rest: Buffer = Buffer.alloc(0);
    client.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      for (let end = endOfCommand(rest); end !== null; end = endOfCommand(rest)) {
        const command = rest.subarray(0, end);
        rest = rest.subarray(end);
        if (left > 0) {
          left -= 1;
          passed += 1;
          server.write(command);
        } else {
          line.held.push(command);
          tighten();
        }
      }
    });
    const close = (): void => {
      client.destroy();
      server.destroy();
      lines.delete(line);
    };
    for (const socket of [client, server]) socket.on('error', close).on('close', close);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(redisUrl);
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const cut = (): void => {
    listener.close();
    for (const { client, server } of lines) {
      client.destroy();
      server.destroy();
    }
  };
  return {
    url: url.href,
    after(commands) {
      left = commands;
      passed = 0;
    },
    passed: () => passed,
    tight,
    release() {
      left = Number.POSITIVE_INFINITY;
      for (const { server, held } of lines) for (const command of held.splice(0)) server.write(command);
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut();
    },
  };
}

/** Where the first command ends in what a client sent (an array of strings, as all clients send them); null: not yet. */
function endOfCommand(bytes: Buffer): number | null {
  const head = number(bytes, 0);
  if (!head) return null;
  let at = head.next;
  for (let part = 0; part < head.value; part++) {
    const length = number(bytes, at);
    if (!length) return null;
    at = length.next + length.value + 2;
  }
  return at <= bytes.length ? at : null;
}

/** The number after the mark (`*` or `$`) at this place, and where its line ends. */
function number(bytes: Buffer, at: number): { value: number; next: number } | null {
  const end = bytes.indexOf('\r\n', at);
  return end === -1 ? null : { value: Number(bytes.toString('latin1', at + 1, end)), next: end + 2 };
}
