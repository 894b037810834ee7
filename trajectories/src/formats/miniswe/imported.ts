/** Reads trajectories of mini-swe-agent, version 1 or 2. */
import { carriedIn } from '../../export/carried.ts';
import {
  exitStatusOf,
  type ImportedRollout,
  type ImportFormat,
  importedChat,
  messageOf,
} from '../../export/importing.ts';
import { listIn, numberIn, objectIn, readTree, requireText, stringIn } from '../../export/importtree.ts';
import { MINI_EXIT } from './trajectory.ts';

export const miniSweAgentImport: ImportFormat = {
  description: 'a folder of *.traj.json of mini-swe-agent, version 1 or 2',
  read: (path) => readTree(path, '.traj.json', rolloutOf),
};

const FORMATS = ['mini-swe-agent-1', 'mini-swe-agent-1.1'];

function rolloutOf(file: Record<string, unknown>, where: string): ImportedRollout {
  const format = stringIn(file, 'trajectory_format');
  if (format === null || !FORMATS.includes(format)) {
    throw new TypeError(`trajectory_format is ${JSON.stringify(format)}, not ${FORMATS.join(' or ')}`);
  }
  const info = objectIn(file, 'info');
  const raw = listIn(file, 'messages');
  if (!raw) throw new TypeError('the field messages is missing');
  // In version 2, the last message contains the exit status.
  const chat = raw.filter(({ role }) => role !== 'exit');
  const answers = chat.filter(({ role }) => role === 'assistant');
  return importedChat({
    where,
    messages: chat.map(messageOf),
    instance_id: requireText(file, 'instance_id'),
    model: stringIn(info, 'config', 'model', 'model_name'),
    patch: stringIn(info, 'submission'),
    exitStatus: exitStatusOf(info.exit_status, MINI_EXIT),
    cost: numberIn(info, 'model_stats', 'instance_cost'),
    carried: carriedIn(info.swefarm),
    carriedTurn: (answer) => objectIn(answers[answer] ?? {}, 'extra').swefarm,
  });
}
