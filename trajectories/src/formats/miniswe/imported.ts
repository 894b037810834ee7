/** Reads trajectories of mini-swe-agent, version 1 or 2. */
import { type CarriedTurn, carriedIn } from '../../export/carried.ts';
import {
  exitStatusOf,
  type ImportedRollout,
  type ImportFormat,
  importedTrajectory,
  messageOf,
  turnsOf,
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
  const carried = carriedIn(info.swefarm);
  const model = stringIn(objectIn(objectIn(info, 'config'), 'model'), 'model_name');
  // In version 2, the last message contains the exit status.
  const chat = raw.filter(({ role }) => role !== 'exit');
  const messages = chat.map(messageOf);
  const answers = chat.filter(({ role }) => role === 'assistant').map((one) => objectIn(one, 'extra'));
  const turn = (answer: number) => (answers[answer]?.swefarm as CarriedTurn | undefined) ?? null;
  return {
    where,
    instance_id: requireText(file, 'instance_id'),
    model,
    patch: stringIn(info, 'submission'),
    trajectory: importedTrajectory({
      messages,
      turns: turnsOf(messages, turn),
      model,
      exitStatus: exitStatusOf(info.exit_status, MINI_EXIT),
      carried,
    }),
    resolved: carried?.resolved ?? null,
    cost: numberIn(objectIn(info, 'model_stats'), 'instance_cost'),
    carried,
  };
}
