/** Writes the formats that have a folder for each instance, and a preds.json beside the folders. */
import { jsonText } from '@swefarm/shared';
import { openFolderTree } from './foldertree.ts';
import type { ExportRequest, ExportWriter } from './format.ts';
import { type ExportedRollout, modelName } from './rollout.ts';

export type TreeFiles = { files: Record<string, string>; status: string | null } | { skipped: string };

export type TreeOptions = {
  /** Returns the content of the rollout's files by file name. */
  render(rollout: ExportedRollout): TreeFiles;
  statuses?: boolean;
};

/** Opens a tree. If an instance has several rollouts, each sample has a tree of its own: `sample-0/`, `sample-1/`. */
export async function openTreeWriter(
  { path, samples }: ExportRequest,
  { render, statuses = false }: TreeOptions,
): Promise<ExportWriter> {
  const tree = await openFolderTree(path);
  const trees = new Map<string, Map<string, string[]>>();
  const costs = new Map<string, number>();
  return {
    async write(rollout) {
      const rendered = render(rollout);
      if ('skipped' in rendered) return rendered.skipped;
      const top = samples > 1 ? `sample-${rollout.sample}/` : '';
      const id = rollout.line.instance_id;
      for (const [name, text] of Object.entries(rendered.files))
        await tree.write(`${top}${id}/${name}`, text);
      const ended = trees.get(top) ?? new Map<string, string[]>();
      await tree.append(`${top}preds.json`, `${ended.size === 0 ? '{' : ','}\n${predictionEntry(rollout)}`);
      const status = rendered.status ?? 'unknown';
      ended.set(status, [...(ended.get(status) ?? []), id]);
      trees.set(top, ended);
      costs.set(top, (costs.get(top) ?? 0) + (rollout.line.cost ?? 0));
      return null;
    },
    async finish() {
      for (const [top, ended] of trees) {
        await tree.append(`${top}preds.json`, '\n}\n');
        if (statuses)
          await tree.write(`${top}run_batch_exit_statuses.yaml`, statusPage(ended, costs.get(top) ?? 0));
      }
      await tree.finish();
    },
    [Symbol.asyncDispose]: () => tree[Symbol.asyncDispose](),
  };
}

/** Returns a prediction in the form of preds.json and .pred files. */
export const prediction = (rollout: ExportedRollout) => ({
  model_name_or_path: modelName(rollout),
  instance_id: rollout.line.instance_id,
  model_patch: rollout.patch ?? '',
});

const predictionEntry = (rollout: ExportedRollout): string =>
  `${jsonText(rollout.line.instance_id)}: ${jsonText(prediction(rollout))}`;

/** Renders the YAML file. Ids need no quotes; a status is quoted as JSON, which is valid YAML. */
function statusPage(ended: ReadonlyMap<string, readonly string[]>, cost: number): string {
  const parts = [...ended].map(
    ([status, ids]) => `  ${jsonText(status)}:\n${ids.map((id) => `  - ${id}\n`).join('')}`,
  );
  return `instances_by_exit_status:\n${parts.join('')}total_cost: ${cost}\n`;
}
