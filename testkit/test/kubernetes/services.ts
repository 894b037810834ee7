/**
 * A stand-in for kube-proxy and the cluster's DNS: redirects the address of a Service on this machine to a pod, by the Service and the
 * EndpointSlices of the real API server, and writes a hosts file with the name of the Service.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { words } from '../../src/launchers/commands.ts';
import { type Cluster, sh } from './cluster.ts';

export type ServiceAddress = AsyncDisposable & {
  readonly url: string;
  /** Runs a bash script with the hosts file. */
  run(script: string, env: Record<string, string>): Promise<string>;
};

export async function openService({ kubectl, folder }: Cluster, name: string): Promise<ServiceAddress> {
  const { clusterIP, ports } = JSON.parse(await kubectl('get', 'service', name, '-o', 'json')).spec;
  const slices = await kubectl(...words`get endpointslices -l kubernetes.io/service-name=${name} -o json`);
  const [slice] = JSON.parse(slices).items;
  const [port] = slice.ports;
  const [address] = slice.endpoints[0].addresses;
  const rule = ['OUTPUT', '-p', 'tcp', '-d', clusterIP, '--dport', String(ports[0].port)];
  const to = ['-j', 'DNAT', '--to-destination', `${address}:${port.port}`];
  await sh('iptables', '-w', '-t', 'nat', '-I', ...rule, ...to);
  const hosts = join(folder, `hosts-${name}`);
  await writeFile(hosts, `127.0.0.1 localhost\n${clusterIP} ${name} ${name}.rl ${name}.rl.svc\n`);
  return {
    url: `http://${clusterIP}:${ports[0].port}`,
    run: (script, env) =>
      sh(
        ...(['unshare', '--mount', 'sh', '-euc', 'mount --bind "$0" /etc/hosts; exec "$@"', hosts] as const),
        ...['env', ...Object.entries(env).map(([key, value]) => `${key}=${value}`)],
        ...['bash', '-euc', script],
      ),
    async [Symbol.asyncDispose]() {
      await sh('iptables', '-w', '-t', 'nat', '-D', ...rule, ...to);
    },
  };
}
