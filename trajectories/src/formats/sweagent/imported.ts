/** Reads SWE-agent's .traj files, each with the .pred file beside it. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { type CarriedTurn, carriedIn } from '../../export/carried.ts';
import { parsedObject } from '../../export/conversation.ts';
import {
  exitStatusOf,
  type ImportedRollout,
  type ImportFormat,
  importedTrajectory,
  messageOf,
  turnsOf,
} from '../../export/importing.ts';
import { listIn, numberIn, objectIn, readTree, stringIn } from '../../export/importtree.ts';
import { SWE_AGENT_EXIT } from './trajectory.ts';

export const sweAgentImport: ImportFormat = {
  description: 'a folder of *.traj of SWE-agent',
  read: (path) => readTree(path, '.traj', rolloutOf),
};

type Json = Record<string, unknown>;

async function rolloutOf(file: Json, where: string): Promise<ImportedRollout> {
  const history = listIn(file, 'history');
  const steps = listIn(file, 'trajectory');
  if (!history || !steps) throw new TypeError('the fields history and trajectory are missing');
  const info = objectIn(file, 'info');
  const carried = carriedIn(info.swefarm);
  const pred =
    parsedObject(await readFile(where.replace(/\.traj$/, '.pred'), 'utf8').catch(() => '{}')) ?? {};
  const model = stringIn(pred, 'model_name_or_path') ?? replayedModel(file);
  const messages = history.map((message) => messageOf(withCallId(message)));
  const turn = (answer: number) =>
    (objectIn(steps[answer] ?? {}, 'extra_info').swefarm as CarriedTurn | undefined) ?? null;
  return {
    where,
    instance_id: stringIn(pred, 'instance_id') ?? basename(where, '.traj'),
    model,
    patch: stringIn(info, 'submission') ?? stringIn(pred, 'model_patch'),
    trajectory: importedTrajectory({
      messages,
      turns: turnsOf(messages, turn),
      model,
      exitStatus: exitStatusOf(info.exit_status, SWE_AGENT_EXIT),
      carried,
    }),
    resolved: carried?.resolved ?? null,
    cost: numberIn(objectIn(info, 'model_stats'), 'instance_cost'),
    carried,
  };
}

/** Copies the first element of SWE-agent's list `tool_call_ids` to `tool_call_id`. */
function withCallId(message: Json): Json {
  const [id] = (listIn(message, 'tool_call_ids') ?? []) as unknown[];
  return typeof id === 'string' ? { tool_call_id: id, ...message } : message;
}

/** Returns the model in `replay_config`, a string that contains JSON; null: none. */
function replayedModel(file: Json): string | null {
  const config = parsedObject(stringIn(file, 'replay_config') ?? '') ?? {};
  return stringIn(objectIn(objectIn(config, 'agent'), 'model'), 'name');
}
