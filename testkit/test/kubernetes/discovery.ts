/**
 * A stand-in for Prometheus's discovery of pods (role pod of kubernetes_sd_configs), which Debian's Prometheus lacks: writes the pods of
 * the real API server, with the same labels for each port, to a file that Prometheus reloads when it changes.
 */
import { rename, writeFile } from 'node:fs/promises';
import { sleep } from '@swefarm/shared';
import type { Cluster } from './cluster.ts';

type Pod = {
  metadata: { name: string; namespace: string; labels?: Record<string, string> };
  spec: { containers: { name: string; ports?: { name?: string; containerPort: number }[] }[] };
  status: { podIP?: string };
};

/** Writes the file each second until disposal. */
export function standInDiscovery({ kubectl }: Cluster, path: string): AsyncDisposable {
  const ended = new AbortController();
  const writing = (async () => {
    while (!ended.signal.aborted) {
      // While the API server does not answer, the file is not changed.
      const answer = await kubectl('get', 'pods', '-o', 'json').catch(() => null);
      if (answer !== null) {
        await writeFile(
          `${path}.new`,
          JSON.stringify((JSON.parse(answer).items as Pod[]).flatMap(targetsOf)),
        );
        await rename(`${path}.new`, path);
      }
      await sleep(1_000);
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      ended.abort();
      await writing;
    },
  };
}

function targetsOf({ metadata, spec, status }: Pod): { targets: string[]; labels: Record<string, string> }[] {
  const { podIP } = status;
  if (!podIP) return [];
  const labels = Object.entries(metadata.labels ?? {}).map(([label, value]) => [
    `__meta_kubernetes_pod_label_${label.replaceAll(/[^\w]/g, '_')}`,
    value,
  ]);
  return spec.containers.flatMap(({ name, ports = [] }) =>
    ports.map((port) => ({
      targets: [`${podIP}:${port.containerPort}`],
      labels: {
        ...Object.fromEntries(labels),
        __meta_kubernetes_namespace: metadata.namespace,
        __meta_kubernetes_pod_name: metadata.name,
        __meta_kubernetes_pod_container_name: name,
        __meta_kubernetes_pod_container_port_name: port.name ?? '',
      },
    })),
  );
}
