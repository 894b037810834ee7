/** Reads SWE-agent's .traj files, each with the .pred file beside it. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { asObject } from '@swefarm/datasets';
import { carriedIn } from '../../export/carried.ts';
import {
  exitStatusOf,
  type ImportedRollout,
  type ImportFormat,
  importedChat,
  messageOf,
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
  const pred = asObject(await readFile(where.replace(/\.traj$/, '.pred'), 'utf8').catch(() => null)) ?? {};
  // `replay_config` is a string that contains JSON.
  const replayed = asObject(file.replay_config) ?? {};
  return importedChat({
    where,
    messages: history.map((message) => messageOf(withCallId(message))),
    instance_id: stringIn(pred, 'instance_id') ?? basename(where, '.traj'),
    model: stringIn(pred, 'model_name_or_path') ?? stringIn(replayed, 'agent', 'model', 'name'),
    patch: stringIn(info, 'submission') ?? stringIn(pred, 'model_patch'),
    exitStatus: exitStatusOf(info.exit_status, SWE_AGENT_EXIT),
    cost: numberIn(info, 'model_stats', 'instance_cost'),
    carried: carriedIn(info.swefarm),
    carriedTurn: (answer) => objectIn(steps[answer] ?? {}, 'extra_info').swefarm,
  });
}

/** Copies the first element of SWE-agent's list `tool_call_ids` to `tool_call_id`. */
function withCallId(message: Json): Json {
  const [id] = (listIn(message, 'tool_call_ids') ?? []) as unknown[];
  return typeof id === 'string' ? { tool_call_id: id, ...message } : message;
}
