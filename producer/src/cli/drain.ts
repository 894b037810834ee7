/** `swefarm drain`: stops the claims of a node without stopping its workers. */
import { UsageError } from '@swefarm/shared';
import { command, flag } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

export const drain = command({
  arguments: { '<node>': 'name of the node, as swefarm status shows it' },
  options: { '--undo': flag('let the node claim again'), ...FARM },
  example: 'swefarm drain node7',
  async run(o, { node }) {
    await using farm = await openFarmPatiently(producerConfig(o));
    const known = (await farm.registry.list()).filter((worker) => worker.node === node);
    if (known.length === 0 && !(await farm.nodes.drained()).has(node)) {
      throw new UsageError(`node ${node}: no worker is alive there; swefarm status lists nodes`);
    }
    if (o.undo) await farm.nodes.undrain(node);
    else await farm.nodes.drain(node);
    const running = known.reduce((sum, worker) => sum + worker.active, 0);
    printStatus(
      o.undo
        ? `${node} claims rollouts again`
        : `${node} claims nothing more; ${running} rollouts run there (--undo lets it claim again)`,
    );
  },
});
