/** `swefarm health`: evaluates the gold patch and the untouched tree of each instance and records the findings. */
import { appendFindings, registryPath, withEgress } from '@swefarm/runs';
import { brokenBecause, type Instance } from '@swefarm/shared';
import { left, right, tableOf } from '../view/columns.ts';
import { command, defaulted, flag, whole } from './declare.ts';
import { EXAMINATION, type Examined, examine } from './examine.ts';
import { EXIT } from './exit.ts';
import { datasetOf, producerConfig } from './options.ts';
import { listenForEvaluations } from './stop.ts';
import { print, printStatus } from './terminal.ts';

export const health = command({
  options: {
    '--n-times <k>': defaulted(whole('evaluations of the gold patch; several show flaky tests'), 1),
    '--try-egress': flag('evaluate the gold patch again with a network where it fails without one'),
    ...EXAMINATION,
  },
  example: 'swefarm health --dataset rows.jsonl --n-times 3',
  async run(o) {
    const stop = listenForEvaluations();
    const registry = registryPath(o.health, producerConfig(o).state_dir);
    const dataset = await datasetOf(o, stop.draining);
    const instances = dataset.instances.filter(({ patch }) => patch.trim() !== '');
    const without = dataset.instances.length - instances.length;
    if (without > 0) printStatus(`swefarm: ${without} rows have no gold patch and cannot be examined`);
    if (instances.length === 0) return EXIT.someNotJudged;

    const gold = Math.max(1, o.nTimes);
    const first = await examine({ ...dataset, instances }, o, { gold, noop: 1 }, stop);
    const findings = first.findings;
    if (o.tryEgress && first.complete) {
      const failing = instances.filter(
        ({ instance_id }) => findings.get(instance_id)?.gold_resolves === false,
      );
      const again = await examine(
        { ...dataset, instances: failing },
        { ...o, run: { ...o.run, evalNetwork: 'egress' } },
        { gold: 1, noop: 1 },
        stop,
      );
      await appendFindings(registry, [...again.findings.values()]);
      for (const [id, finding] of findings) {
        findings.set(id, withEgress(finding, again.findings.get(id) ?? null));
      }
    }
    await appendFindings(registry, [...findings.values()]);
    await printFindings(instances, first, registry);
    if (!first.complete) return EXIT.interrupted;
    return findings.size < instances.length ? EXIT.someNotJudged : EXIT.allJudged;
  },
});

async function printFindings(
  instances: readonly Instance[],
  { findings, unjudged }: Pick<Examined, 'findings' | 'unjudged'>,
  registry: string,
): Promise<void> {
  const table = (): string =>
    tableOf(instances, [
      left('instance', ({ instance_id }) => instance_id),
      right('gold s', ({ instance_id }) => findings.get(instance_id)?.gold_seconds.toFixed(1) ?? '-'),
      left('health', ({ instance_id }) => {
        const finding = findings.get(instance_id);
        if (!finding) return `no verdict: ${unjudged.get(instance_id)?.reason ?? 'cut off'}`;
        return brokenBecause(finding) ?? 'healthy';
      }),
    ]);
  if (process.stdout.isTTY) await print(table());
  else for (const finding of findings.values()) await print(JSON.stringify(finding));
  for (const { instance_id, flaky } of findings.values()) {
    for (const name of flaky) printStatus(`flaky: ${instance_id}: ${name}`);
  }
  for (const [id, { reason, message }] of unjudged) printStatus(`no verdict: ${id}: ${reason}: ${message}`);
  const healthy = [...findings.values()].filter((finding) => brokenBecause(finding) === null).length;
  printStatus(`${healthy} of ${instances.length} instances are healthy; registry: ${registry}`);
}
