/** Checks before a local run that the programs of its agent are installed, so that the run does not fail rollout by rollout. */
import { findBundle } from '@swefarm/agents';
import type { RunFlagValues } from '@swefarm/runs';
import { type ProducerConfig, type RunRecord, UsageError } from '@swefarm/shared';
import { quoted } from './terminal.ts';

type LocalRun = { run: RunFlagValues; workerCommand: string | undefined; localWorker?: boolean };

/** Throws UsageError if local workers would lack the bundle. Workers of another command may have another folder. */
export async function requireBundle(
  { run, workerCommand, localWorker }: LocalRun,
  { agents_dir: dir, local_workers: count }: ProducerConfig,
  { agent: { card } }: RunRecord,
): Promise<void> {
  if (card === null || workerCommand !== undefined || localWorker === false || count === 0) return;
  if (await findBundle(dir, card.bundle.name, card.bundle.lock)) return;
  const name = typeof run.agentCard === 'string' ? quoted(run.agentCard) : card.name;
  throw new UsageError(
    `the programs of agent ${card.name} ${card.version} are not installed in ${dir}: swefarm agents install ${name}`,
    { code: 'no_agent' },
  );
}
