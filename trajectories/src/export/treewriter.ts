/** Writes the formats that have a folder for each instance, and a preds.json beside the folders. */
import { jsonText } from '@swefarm/shared';
import { openFolderTree } from './foldertree.ts';
import type { ExportRequest, ExportWriter } from './format.ts';
import { type ExportedRollout, predictionOf } from './rollout.ts';

/** Contents of a rollout's files by file name, and the exit status of its agent. */
export type TreeFiles = { files: Record<string, string>; status: string | null };

/** Opens a tree. If an instance has several rollouts, each sample has a tree of its own: `sample-0/`, `sample-1/`. */
export async function openTreeWriter(
  { path, samples }: ExportRequest,
  render: (rollout: ExportedRollout) => TreeFiles,
): Promise<ExportWriter> {
  const tree = await openFolderTree(path);
  const trees = new Map<string, ExportedTree>();
  return {
    ...tree,
    async write(rollout) {
      const { files, status } = render(rollout);
      const top = samples > 1 ? `sample-${rollout.sample}/` : '';
      const { instance_id: id, cost = 0 } = rollout.line;
      for (const [name, text] of Object.entries(files)) await tree.write(`${top}${id}/${name}`, text);
      const entry = `\n${jsonText(id)}: ${jsonText(predictionOf(rollout))}`;
      const own = trees.get(top) ?? { ended: [], cost: 0 };
      await tree.append(`${top}preds.json`, `${own.ended.length > 0 ? ',' : '{'}${entry}`);
      own.ended.push({ id, status: status ?? 'unknown' });
      own.cost += cost;
      trees.set(top, own);
    },
    async finish() {
      for (const [top, own] of trees) {
        await tree.append(`${top}preds.json`, '\n}\n');
        await tree.write(`${top}run_batch_exit_statuses.yaml`, statusPage(own));
      }
      await tree.finish();
    },
  };
}

type ExportedTree = { ended: { id: string; status: string }[]; cost: number };

/** Renders the YAML file. Ids need no quotes; a status is quoted as JSON, which is valid YAML. */
function statusPage({ ended, cost }: ExportedTree): string {
  const parts = [...Map.groupBy(ended, ({ status }) => status)].map(
    ([status, own]) => `  ${jsonText(status)}:\n${own.map(({ id }) => `  - ${id}\n`).join('')}`,
  );
  return `instances_by_exit_status:\n${parts.join('')}total_cost: ${cost}\n`;
}
