/** `swefarm drain`: empties a node without stopping its workers. Its rollouts end, or go to other nodes. */
import { UsageError } from '@swefarm/shared';
import type { Command } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { say } from './terminal.ts';

export function addDrain(program: Command): void {
  const command = program
    .command('drain')
    .argument('<node>', 'name of the node, as swefarm status shows it')
    .option('--undo', 'let the node claim again');
  addFarmOptions(command).action(async (node: string, flags: Flags) => {
    await using farm = await openFarmPatiently(producerConfig(flags));
    const known = (await farm.registry.list()).filter((worker) => worker.node === node);
    const undo = flags.undo === true;
    if (known.length === 0 && !(await farm.nodes.drained()).has(node)) {
      throw new UsageError(`node ${node}: no worker is alive there; swefarm status lists nodes`);
    }
    if (undo) await farm.nodes.undrain(node);
    else await farm.nodes.drain(node);
    const running = known.reduce((sum, worker) => sum + worker.active, 0);
    say(
      undo
        ? `${node} claims rollouts again`
        : `${node} claims nothing more; ${running} rollouts run there (take it back with --undo)`,
    );
  });
}
