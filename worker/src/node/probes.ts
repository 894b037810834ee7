/**
 * HTTP server of the worker: metrics of this node for Prometheus, and probes: whether this worker can take a rollout now (`/readyz`), and
 * whether it must be restarted (`/livez`). Both use the last heartbeat and the last check of the runtime, so that a probe costs little.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Runtime } from '@swefarm/sandbox';
import { errorMessage, type Farm, hostPort, type Log, reachableHost, waitAtMost } from '@swefarm/shared';
import type { Node } from './node.ts';

const BEAT_LATE_MS = 5_000;
/** If no heartbeat succeeds for this time although Redis answers, the worker's loops have stopped. */
const BEAT_DEAD_MS = 60_000;
const PING_MS = 2_000;
/** Age of the last check of the runtime at which a probe starts another check; after a failed check the shorter age applies. */
const CHECK_EVERY_MS = 30_000;
const CHECK_AGAIN_MS = 5_000;
const CHECK_MS = 30_000;

export type Probes = ReturnType<typeof createProbes>;

type ProbesDeps = {
  runtime: Pick<Runtime, 'name' | 'check'>;
  farm: Pick<Farm, 'ping'>;
  log: Pick<Log, 'info' | 'warn'>;
  stop: AbortSignal;
  now?: () => number;
};

/** The runtime counts as usable at first, because the worker checks it before it opens the server. */
export function createProbes({ runtime, farm, log, stop, now = () => performance.now() }: ProbesDeps) {
  let beatAt = now();
  let beats = 0;
  let paused: string | null = null;
  let unusable: string | null = null;
  let checkedAt = now();
  let isChecking = false;
  const logChange = readinessLog(log);
  const whyNotReady = (): string | null => {
    const pause = unusable === null ? CHECK_EVERY_MS : CHECK_AGAIN_MS;
    if (!isChecking && now() - checkedAt >= pause) void check();
    const sinceBeat = now() - beatAt;
    if (sinceBeat >= BEAT_LATE_MS) return `Redis took no heartbeat for ${Math.round(sinceBeat / 1000)} s`;
    if (unusable !== null) return `runtime ${runtime.name}: ${unusable}`;
    return paused === null ? null : `claims nothing: ${paused}`;
  };
  const check = async (): Promise<void> => {
    isChecking = true;
    const signal = AbortSignal.any([stop, AbortSignal.timeout(CHECK_MS)]);
    unusable = await runtime.check(signal).then(
      ({ usable, problems }) => (usable ? null : problems.join('; ') || 'unusable'),
      (error: unknown) => errorMessage(error),
    );
    checkedAt = now();
    isChecking = false;
  };
  return {
    /** Called after each heartbeat that Redis accepted. `reason` is why this worker claims nothing; null: it claims. */
    beaten(reason: string | null): void {
      beatAt = now();
      beats += 1;
      paused = reason;
    },
    /** Returns in one line why this worker can take no rollout; null: it can. Logs each change of readiness. */
    whyNotReady(): string | null {
      if (stop.aborted) return 'draining';
      if (beats === 0) return 'starting: Redis took no heartbeat yet';
      const reason = whyNotReady();
      logChange(reason);
      return reason;
    },
    /** Returns in one line why this worker must be restarted; null: a restart is not needed or would not help. */
    async whyNotAlive(): Promise<string | null> {
      const sinceBeat = now() - beatAt;
      if (stop.aborted || sinceBeat < BEAT_DEAD_MS) return null;
      // A restart does not help while Redis is unavailable.
      const ping = await waitAtMost(farm.ping(), PING_MS).catch(() => null);
      if (ping?.by !== 'itself' || now() - beatAt < BEAT_DEAD_MS) return null;
      return `no heartbeat for ${Math.round(sinceBeat / 1000)} s, although Redis answers`;
    },
  };
}

/** Logs each change of readiness with the reason, because Kubernetes shows only the status of a failed probe. */
function readinessLog(log: ProbesDeps['log']): (reason: string | null) => void {
  let wasReady = true;
  return (reason) => {
    if ((reason === null) === wasReady) return;
    wasReady = reason === null;
    if (reason === null) log.info('ready again');
    else log.warn({ reason }, 'not ready');
  };
}

/** Serves /metrics, /healthz (503 while draining), /readyz and /livez. Returns null when the configuration has port 0. */
export async function serveMetrics(
  { config, metrics, stop }: Node,
  probes: Probes,
): Promise<(AsyncDisposable & { address: string }) | null> {
  const { metrics_port: port, metrics_host: host, metrics_address: shownHost } = config;
  if (port === 0) return null;
  const { registry } = metrics;
  const answers: Record<string, () => string | null | Promise<string | null>> = {
    '/healthz': () => (stop.aborted ? 'draining' : null),
    '/readyz': probes.whyNotReady,
    '/livez': probes.whyNotAlive,
  };
  const server: Server = createServer(async (request, response) => {
    if (request.url === '/metrics') {
      const text = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
      return;
    }
    const answer = answers[request.url ?? ''];
    if (answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    const problem = await answer();
    response
      .writeHead(problem === null ? 200 : 503, { 'content-type': 'text/plain' })
      .end(`${problem ?? 'ok'}\n`);
  });
  await once(server.listen(port === 'auto' ? 0 : port, host), 'listening');
  const bound = server.address() as AddressInfo;
  return {
    address: hostPort(shownHost ?? reachableHost(host), bound.port),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}
