/** `swefarm policy`: announces weight updates to the farm, and shows policies and their endpoints. */
import {
  DEFAULT_POLICY,
  type EndpointView,
  type Farm,
  openFarm,
  PolicyChange,
  PolicyName,
  type PolicyRecord,
  PolicyState,
  UsageError,
} from '@swefarm/shared';
import { renderTable, terminalSafe } from '@swefarm/trajectories';
import { type Command, Option } from 'commander';
import { openFarmPatiently } from './farm.ts';
import { addFarmOptions, type Flags, producerConfig } from './options.ts';
import { print } from './terminal.ts';

export function addPolicy(program: Command): void {
  const policy = program.command('policy');

  const set = policy
    .command('set')
    .description('set what changed; for a weight update first `--state updating`, then `--state serving`')
    .argument('[name]', 'name of the policy', DEFAULT_POLICY)
    .option('--policy-version <name>', 'the weights, as the trainer names them')
    .addOption(
      new Option('--endpoint <url>', 'OpenAI-compatible endpoint (repeatable); replaces all').argParser(
        (url: string, earlier: string[] | undefined) => [...(earlier ?? []), url],
      ),
    )
    .addOption(
      new Option('--state <state>', 'requests are sent only to a policy that is serving').choices(
        PolicyState.options,
      ),
    );
  addFarmOptions(set).action(async (name: string, flags: Flags) => {
    const change = readChange(name, flags);
    await using farm = await openFarmPatiently(producerConfig(flags));
    const record = await farm.policies.set(name, change);
    await print(process.stdout.isTTY ? line(record) : JSON.stringify(record));
  });

  const show = policy
    .command('show')
    .description('list policies with their endpoints, as workers see them')
    .argument('[name]', 'name of a policy; default: all')
    .option('--json', 'print JSON (the default in a pipe)');
  addFarmOptions(show).action(async (name: string | undefined, flags: Flags) => {
    await using farm = await openFarm(producerConfig(flags), 'producer');
    const shown = await readAll(farm, name);
    const human = process.stdout.isTTY && flags.json !== true;
    await print(human ? describe(shown) : JSON.stringify(shown));
  });

  const remove = policy
    .command('remove')
    .description('remove a policy; runs that follow it continue with their own endpoints')
    .argument('<name>', 'name of the policy');
  addFarmOptions(remove).action(async (name: string, flags: Flags) => {
    await using farm = await openFarmPatiently(producerConfig(flags));
    await farm.policies.remove(name);
  });
}

function readChange(name: string, flags: Flags): PolicyChange {
  if (!PolicyName.safeParse(name).success) {
    throw new UsageError(`policy name "${name}": expected letters, digits, dot, - and _, at most 64`);
  }
  const read = PolicyChange.safeParse({
    version: flags.policyVersion,
    endpoints: flags.endpoint,
    state: flags.state,
  });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  if (issue?.path.length === 0)
    throw new UsageError('policy set: give what changed: --policy-version, --endpoint or --state');
  throw new UsageError(`policy set: ${issue?.path.join('.')}: ${issue?.message}`);
}

type Shown = PolicyRecord & { seen: (EndpointView & { worker: string })[] };

async function readAll(farm: Farm, name: string | undefined): Promise<Shown[]> {
  const records = await (name === undefined ? farm.policies.list() : farm.policies.get([name]));
  if (name !== undefined && records.length === 0) {
    throw new UsageError(
      `policy ${name}: ${farm.address} knows none of this name; swefarm policy show lists all`,
    );
  }
  const reports = await farm.policies.reports();
  const views = [...reports].flatMap(([worker, list]) => list.map((view) => ({ worker, ...view })));
  return records.map((record) => ({
    ...record,
    seen: views.filter(({ url }) => record.endpoints.length === 0 || record.endpoints.includes(url)),
  }));
}

const line = ({ name, state, version, endpoints, changed_at }: PolicyRecord): string =>
  `${name}: ${state}, version ${version ?? 'unknown'}, ${endpoints.length || 'no'} endpoints of its own, since ${new Date(changed_at).toISOString()}`;

function describe(shown: readonly Shown[]): string {
  if (shown.length === 0) return 'no trainer has spoken of a policy (swefarm policy set)';
  return shown
    .map((one) => {
      if (one.seen.length === 0) return `${line(one)}\n  no worker uses it now`;
      const columns = ['endpoint', 'worker', 'rollouts', 'state'].map((title) => ({ name: title }));
      const rows = one.seen.map(({ url, worker, load, aside_seconds: aside, reason }) => [
        terminalSafe(url),
        worker,
        String(load),
        aside > 0 ? `set aside for ${aside.toFixed(0)} s: ${terminalSafe(reason ?? '')}` : 'in use',
      ]);
      return `${line(one)}\n${renderTable(columns, rows)}`;
    })
    .join('\n\n');
}
