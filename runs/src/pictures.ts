/** Checks before a submit whether a run can send the pictures of its instances to the model. */
import {
  asksPolicy,
  type Instance,
  MOST,
  type Picture,
  picturesRefusedBy,
  type RunRecord,
  UsageError,
} from '@swefarm/shared';

const SHOWN = 5;

/**
 * Returns the instances as Redis stores them for a run with these settings: without pictures if the run sends none.
 *
 * @throws UsageError `pictures` when the agent or the token mode cannot send pictures, files are missing, or the files are too large for one run
 */
export function withShownPictures(
  { agent, policy }: Pick<RunRecord, 'agent' | 'policy'>,
  instances: readonly Instance[],
): Instance[] {
  const showing = instances.filter(({ pictures = [] }) => pictures.length > 0);
  if (showing.length === 0) return [...instances];
  if (agent.pictures === 'drop' || !asksPolicy(agent.type) || policy === null) {
    return instances.map(({ pictures: _pictures, ...instance }) => instance);
  }
  const count = `${showing.length} of ${instances.length} instances show pictures`;
  const drop = '--pictures drop, which sends the text alone';
  const refused = picturesRefusedBy(agent.type, policy.token_mode);
  if (refused !== null) {
    const remedy = agent.type === 'installed' ? drop : `--token-mode text, or ${drop}`;
    throw unshown(`${count} (${named(showing)}), and ${refused}; use ${remedy}`);
  }
  const lost = showing.filter(({ pictures = [] }) => pictures.some(isLost));
  if (lost.length > 0) {
    throw unshown(
      [
        `${count}, and those of ${lost.length} cannot be sent:`,
        ...lost.slice(0, SHOWN).map(describeLost),
        ...(lost.length > SHOWN ? [`  … and ${lost.length - SHOWN} more instances`] : []),
        `bring them with swefarm dataset pictures --dataset FILE --output-dir DIR, and name the folder with --picture-files DIR; leave out single instances with --ids; or use ${drop}`,
      ].join('\n'),
    );
  }
  const bytes = showing
    .flatMap(({ pictures = [] }) => pictures)
    .reduce((sum, { file }) => sum + (file?.bytes ?? 0), 0);
  if (bytes > MOST.runPictureBytes) {
    throw unshown(
      `${count}, of ${bytes} bytes in all, and Redis stores at most ${MOST.runPictureBytes} of one run; make several runs, or use ${drop}`,
    );
  }
  return [...instances];
}

const unshown = (message: string): UsageError => new UsageError(message, { code: 'pictures' });

const isLost = ({ file }: Picture): boolean => !file;

const named = (instances: readonly Instance[]): string =>
  instances
    .slice(0, SHOWN)
    .map(({ instance_id }) => instance_id)
    .concat(instances.length > SHOWN ? ['…'] : [])
    .join(', ');

function describeLost({ instance_id, pictures = [] }: Instance): string {
  const lost = pictures.filter(isLost);
  const [first] = lost;
  const more = lost.length > 1 ? ` (and ${lost.length - 1} more)` : '';
  return `  ${instance_id}: ${first?.address}: ${first?.problem ?? 'no --picture-files names it'}${more}`;
}
