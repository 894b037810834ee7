/** `swefarm serve`: the gateway through which training jobs drive the farm over HTTP. */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dryRunFarm, readCallers, startGateway } from '@swefarm/gateway';
import { readRegistry, registryPath, runSettings } from '@swefarm/runs';
import {
  createLog,
  type Instance,
  logEscaped,
  newId,
  onEscaped,
  openFarm,
  ownFolder,
  type ProducerConfig,
  Secret,
  SwefarmError,
  UsageError,
  whenAborted,
} from '@swefarm/shared';
import { command, group, text, type Values } from './declare.ts';
import { DRY_RUN, openDryRun, withDryRun } from './dryrun.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { apiKeyOf, datasetOf, FARM, producerConfig, rowOptions, SERVE } from './options.ts';
import { listenForStop, type Stop } from './stop.ts';
import { print, printStatus } from './terminal.ts';

export const serve = command({
  options: {
    ...group('Gateway:', {
      '--host <address>': text('short for --gateway-host'),
      '--port <port>': text('short for --gateway-port'),
    }),
    ...SERVE,
    ...DRY_RUN,
    ...FARM,
  },
  example: 'swefarm serve --redis-url redis://farm:6379 --port 8080',
  async run(o) {
    const { gatewayHost = o.host, gatewayPort = o.port } = o.gateway;
    const given = producerConfig({ farm: { ...o.farm, ...o.gateway, gatewayHost, gatewayPort } });
    const config = { ...given, policy_api_key: apiKeyOf(o.apiKeyEnv, given.policy_api_key) };
    const stop = listenForStop();
    try {
      return await serveUntil(stop, o, config);
    } catch (error) {
      // A signal ended the start, such as the wait for Redis.
      if (stop.draining.aborted && isAbort(error)) return EXIT.allJudged;
      throw error;
    }
  },
});

const isAbort = (error: unknown): boolean =>
  (error instanceof SwefarmError && error.code === 'aborted') || (error as Error).name === 'AbortError';

type ServeValues = Values<typeof SERVE & typeof DRY_RUN & typeof FARM>;

async function serveUntil(stop: Stop, o: ServeValues, given: ProducerConfig): Promise<ExitCode> {
  await using stack = new AsyncDisposableStack();
  const dryRun = await openDryRun(o, given, stack, stop.draining);
  const config = dryRun?.config ?? given;
  const settings = withDryRun(runSettings({ flags: o.run, configFile: o.runConfig }), dryRun);
  const { dataset: path } = o;
  const dataset = path === undefined ? null : await datasetOf({ ...o, dataset: path }, stop.draining);
  const instances: Map<string, Instance> = dryRun?.instances ?? new Map();
  for (const instance of dataset?.instances ?? []) instances.set(instance.instance_id, instance);
  const health = await readRegistry(registryPath(o.health, config.state_dir));
  const callers = readCallers(config);
  const log = createLog(config, { role: 'gateway' });
  using _escaped = onEscaped(logEscaped(log));
  await using opened = await openFarm(config, 'producer', {
    ...{ log, signal: stop.draining, patienceSeconds: config.redis_patience_seconds, entrusts: true },
  });
  for (const warning of opened.warnings) log.warn(warning);
  const farm = dryRun ? dryRunFarm(opened, dryRun.instances) : opened;
  const tokenFile = callers.length === 0 ? join(config.state_dir, 'gateway.token') : null;
  if (tokenFile !== null) callers.push(...(await generatedCaller(config, tokenFile)));
  const rows = rowOptions(o);
  const deps = { farm, config, log, signal: stop.draining, settings, instances, health, rows };
  const faults = dryRun ? { faults: dryRun.script } : {};
  await using gateway = await startGateway({ ...deps, ...faults }, { callers }).catch((error: unknown) => {
    throw addressError(error, config);
  });
  await print(JSON.stringify({ url: gateway.url, host: gateway.host, port: gateway.port }));
  printStatus(`the page of runs is ${gateway.url}/ui/`);
  if (tokenFile !== null) printStatus(`no token was given: a new one for this start is in ${tokenFile}`);
  const lost = await Promise.race([
    whenAborted(stop.draining),
    dryRun?.worker.ended ?? new Promise<never>(() => undefined),
  ]);
  if (lost instanceof Error) throw lost;
  return EXIT.allJudged;
}

/** Writes a new token to `path`, because every request needs a token unless the configuration allows anonymous callers. */
async function generatedCaller(config: ProducerConfig, path: string) {
  const token = `${newId()}${newId()}`;
  await ownFolder(config.state_dir, { setting: 'state_dir' });
  await writeFile(path, `${token}\n`, { mode: 0o600 });
  await chmod(path, 0o600);
  return readCallers({ ...config, gateway_token: new Secret(token) });
}

const ADDRESS_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken; choose another --port',
  EADDRNOTAVAIL: 'is no address of this machine; choose another --host',
  ENOTFOUND: 'is no address of this machine; choose another --host',
  EACCES: 'may not be used by this user; choose a --port over 1023',
};

function addressError(error: unknown, { gateway_host, gateway_port }: ProducerConfig): unknown {
  const problem = ADDRESS_PROBLEMS[(error as NodeJS.ErrnoException).code ?? ''];
  if (problem === undefined) return error;
  return new UsageError(`${gateway_host}:${gateway_port} ${problem}`, { cause: error });
}
