/** Tests that prepull fills a store from a volume of archives. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { prepareSubject } from '../../src/images/subject.ts';
import { writeLines } from '../../src/lines.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';
import { callerOf } from './caller.ts';
import { type Cluster, sh } from './cluster.ts';

/**
 * Installs a release with this kind of prepull, which is also its name. Fails unless the store on the node is filled, and rollouts add
 * nothing to it. Returns the store and the pod of prepull.
 */
export async function expectFilled(
  cluster: Cluster,
  policy: ScriptedPolicy,
  kind: 'job' | 'daemonset',
  install: (name: string, ...set: string[]) => Promise<unknown>,
  ...set: string[]
): Promise<{ store: string; pod: string }> {
  const { tree } = await prepareSubject();
  const archives = join(cluster.folder, `${kind}-archives`);
  const store = join(cluster.folder, `${kind}-store`);
  await mkdir(archives);
  const archive = ['testkit/kubernetes/archive.py', tree, join(archives, 'calc.tar'), 'calc:1', 'bash'];
  await sh('python3', ...archive);
  const image = 'docker-archive:/archives/calc.tar';
  const row = JSON.parse(await readFile(join(dirname(tree), 'row.json'), 'utf8')) as object;
  const rows = join(cluster.folder, 'rows.jsonl');
  await writeLines(rows, [{ ...row, image }]);
  await cluster.kubectl('create', 'configmap', `rows-${kind}`, `--from-file=rows.jsonl=${rows}`);
  const paths = [`worker.archives.hostPath.path=${archives}`, `worker.store.path=${store}`];
  await install(kind, ...paths, `prepull.kind=${kind}`, `prepull.configMap=rows-${kind}`, ...set);
  const pod = `${kind}/${kind}-swefarm-prepull${kind === 'job' ? '-1' : ''}`;
  const wait = kind === 'job' ? 'wait --for=condition=complete' : 'rollout status';
  await cluster.kubectl(...wait.split(' '), pod, '--timeout=120s');
  expect(await cluster.kubectl('logs', pod, '-c', 'pull')).toContain('pulled');
  const stored = async () => (await readdir(join(store, 'v1/images'))).sort();
  const before = await stored();
  const caller = await callerOf(cluster, kind);
  const run = await caller.submit(policy, 2, image);
  await caller.expectWhole(await caller.results(run, 2), 2);
  expect(await stored()).toEqual(before);
  return { store, pod };
}
