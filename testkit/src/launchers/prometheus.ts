/** Debian's Prometheus and Alertmanager for one test: own folder, free port, ended when the handle is disposed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, sleep, UnusableError } from '@swefarm/shared';

const READY_MS = 60_000;
/** Another process may take a port between its choice and its use. */
const TRIES = 3;

export interface Monitor extends AsyncDisposable {
  readonly url: string;
}

export type Sample = { metric: Record<string, string>; value: [number, string] };

export interface Prometheus extends Monitor {
  /** An instant query. Throws with Prometheus's own message. */
  query(expr: string): Promise<Sample[]>;
  /** Health of each target by its labels. */
  targets(): Promise<{ labels: Record<string, string>; health: string }[]>;
}

/** `config` is the text of the configuration; paths in it are relative to `dir`. */
export async function startPrometheus(dir: string, config: string): Promise<Prometheus> {
  await writeFile(join(dir, 'prometheus.yml'), config);
  const started = await startMonitor('prometheus', '/-/ready', (port) => [
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'tsdb')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]);
  const api = async (path: string): Promise<unknown> => {
    const reply = (await (await fetch(`${started.url}/api/v1/${path}`)).json()) as Record<string, unknown>;
    if (reply.status !== 'success') throw new Error(`prometheus: ${reply.error} (${path})`);
    return reply.data;
  };
  return {
    ...started,
    async query(expr) {
      const { result } = (await api(`query?${new URLSearchParams({ query: expr })}`)) as { result: Sample[] };
      return result;
    },
    async targets() {
      const data = (await api('targets?state=active')) as {
        activeTargets: { labels: Record<string, string>; health: string }[];
      };
      return data.activeTargets;
    },
  };
}

/** Starts an Alertmanager that sends every alert to `webhook` at once. */
export async function startAlertmanager(dir: string, webhook: string): Promise<Monitor> {
  const config = {
    route: { receiver: 'test', group_wait: '0s', group_interval: '1s', repeat_interval: '1h' },
    receivers: [{ name: 'test', webhook_configs: [{ url: webhook, send_resolved: true }] }],
  };
  // JSON is YAML.
  await writeFile(join(dir, 'alertmanager.yml'), JSON.stringify(config));
  return await startMonitor('prometheus-alertmanager', '/-/ready', (port) => [
    `--config.file=${join(dir, 'alertmanager.yml')}`,
    `--storage.path=${join(dir, 'alertmanager')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ]);
}

async function startMonitor(
  binary: string,
  ready: string,
  args: (port: number) => string[],
): Promise<Monitor> {
  let output = '';
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const port = await freePort();
    const child = spawn(binary, args(port), { stdio: ['ignore', 'ignore', 'pipe'] });
    let gone: unknown = null;
    child.once('error', (error) => {
      gone = error;
    });
    child.once('exit', (code, signal) => {
      gone ??= `ended with ${signal ?? code}`;
    });
    output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-2000);
    });
    const url = `http://127.0.0.1:${port}`;
    const until = Date.now() + READY_MS;
    while (gone === null && Date.now() < until) {
      const answer = await fetch(url + ready).catch(() => null);
      if (answer?.ok) return { url, [Symbol.asyncDispose]: () => end(child) };
      await sleep(50);
    }
    await end(child);
    if (gone instanceof Error) output = gone.message;
  }
  throw new UnusableError(
    'monitor',
    `${binary} does not start (testkit/setup/setup.sh prometheus): ${output}`,
  );
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
