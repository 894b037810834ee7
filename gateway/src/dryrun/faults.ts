/** Injects HTTP faults in a dry run: refusals, delays, broken answers, an unreachable gateway, repeated deliveries. */
import { Readable } from 'node:stream';
import { applies, type DryRunScript, type HttpFault, type Log, secondsOf, sleep } from '@swefarm/shared';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../access/app.ts';

/** Header of every answer of a dry run. */
const HEADER = 'x-swefarm-dry-run';
/** Routes without faults: probes, metrics and the page. */
const SPARED = /^\/(healthz|livez|metrics|sd|ui)(\/|$)/;
const DELIVERIES = /^\/v1\/runs\/[^/]+\/(results|groups)\?/;
/** Maximum number of bytes that are sent before the connection breaks. */
const MOST_BYTES = 4_096;

type Decided = { fault: HttpFault; name: string };

declare module 'fastify' {
  interface FastifyRequest {
    dryRunFaults?: Decided[];
  }
}

/** Adds the faults of the script to all routes that are registered later. Call it before authentication. */
export function injectFaults(app: App, { seed, http }: DryRunScript, log: Log): void {
  const counts = http.map(() => 0);
  const absence = createAbsence(app);
  const decide = ({ url }: FastifyRequest): Decided[] =>
    http.flatMap((fault, at) => {
      if (SPARED.test(url) || !url.startsWith(fault.route)) return [];
      const count = (counts[at] ?? 0) + 1;
      counts[at] = count;
      const name = `${seed}/http/${at}/${count}`;
      return applies(fault, count, name) ? [{ fault, name }] : [];
    });
  app.addHook('onRequest', async (request, reply) => {
    reply.raw.setHeader(HEADER, 'true');
    const decided = decide(request);
    request.dryRunFaults = decided;
    for (const { fault, name } of decided) {
      log.info({ method: request.method, url: request.url, fault }, 'fault of the dry run');
      if (fault.delay !== undefined) await sleep(secondsOf(fault.delay, name) * 1000);
      if (fault.gone !== undefined) {
        absence.begin(fault.gone);
        return reply.hijack();
      }
      if (fault.status !== undefined) return refuse(reply, fault.status, fault.retry_after);
    }
  });
  const earlier = new Map<string, string>();
  app.addHook('preHandler', async (request) => repeat(request, earlier));
  app.addHook('onSend', async (request, reply, payload) => {
    if (!request.dryRunFaults?.some(({ fault }) => fault.cut)) return payload;
    reply.removeHeader('content-length');
    return Readable.from(beginningOf(payload));
  });
}

async function refuse(reply: FastifyReply, status: number, retryAfter?: number): Promise<FastifyReply> {
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter));
  const message = `the script of the dry run answers ${status} here`;
  return reply.code(status).send({ error: { code: 'dry_run_fault', message } });
}

/** Repeats the last delivery of results or groups to a reader. `earlier`: the last `after` of each reader. */
function repeat({ url, query, dryRunFaults }: FastifyRequest, earlier: Map<string, string>): void {
  if (!DELIVERIES.test(url)) return;
  const reader = url.slice(0, url.indexOf('?'));
  const asked = query as { after: string };
  const again = dryRunFaults?.some(({ fault }) => fault.repeat) ? earlier.get(reader) : undefined;
  earlier.set(reader, asked.after);
  if (again !== undefined) asked.after = again;
}

/** Yields the beginning of an answer, then throws, so that the connection breaks. */
async function* beginningOf(payload: unknown): AsyncGenerator<Buffer> {
  const pieces = payload instanceof Readable ? payload : [payload ?? ''];
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece as string | Buffer);
    yield bytes.subarray(0, Math.min(MOST_BYTES, Math.ceil(bytes.length / 2)));
    throw new Error('the script of the dry run breaks this answer');
  }
}

/** Closes all connections for some seconds, so that the gateway is unreachable. */
function createAbsence(app: App) {
  let until = 0;
  const isAbsent = (): boolean => performance.now() < until;
  app.server.on('connection', (socket) => {
    if (isAbsent()) socket.destroy();
  });
  return {
    begin(seconds: number): void {
      until = Math.max(until, performance.now() + seconds * 1000);
      app.server.closeAllConnections();
    },
  };
}
