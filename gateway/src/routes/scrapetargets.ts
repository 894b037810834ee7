/** Targets for the HTTP and file service discovery of Prometheus: live workers with metrics, and this gateway. */
import { errorMessage, type Log, replaceFile, type WorkerRecord } from '@swefarm/shared';

/** One entry of the target list; format: https://prometheus.io/docs/prometheus/latest/http_sd. */
export type TargetGroup = { targets: string[]; labels: Record<string, string> };

/** @param gateway `host:port` of the gateway; null: the targets do not include the gateway */
export function targetGroups(workers: readonly WorkerRecord[], gateway: string | null): TargetGroup[] {
  const own: TargetGroup[] = gateway === null ? [] : [{ targets: [gateway], labels: { role: 'gateway' } }];
  const groups = workers.flatMap(({ metrics, node, runtime }) =>
    metrics === null ? [] : [{ targets: [metrics], labels: { role: 'worker', node, runtime } }],
  );
  return [...own, ...groups.sort((a, b) => (String(a.targets) < String(b.targets) ? -1 : 1))];
}

const EVERY_MS = 10_000;

export type FileSdDeps = { path: string; groups: () => Promise<TargetGroup[]>; log: Log };

/** Writes the file immediately and whenever the targets change. */
export function startFileSd({ path, groups, log }: FileSdDeps): { stop(): Promise<void> } {
  let written = '';
  let failed = false;
  const write = async (): Promise<void> => {
    try {
      const text = `${JSON.stringify(await groups(), null, 2)}\n`;
      if (text === written) return;
      await replaceFile(path, text, { aside: `${path}.new` });
      written = text;
      failed = false;
    } catch (error) {
      if (!failed) log.warn({ path, err: errorMessage(error) }, 'targets not written');
      failed = true;
    }
  };
  let writing = write();
  const timer = setInterval(() => {
    writing = writing.then(write);
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await writing;
    },
  };
}
