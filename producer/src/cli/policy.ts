/** `swefarm policy`: announces weight updates to the farm, and shows and removes policies. */
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
import { terminalSafe } from '@swefarm/trajectories';
import { left, tableOf } from '../view/columns.ts';
import { choice, command, commands, defaulted, flag, list, text } from './declare.ts';
import { openFarmPatiently } from './farm.ts';
import { FARM, producerConfig } from './options.ts';
import { print } from './terminal.ts';

const set = command({
  description: 'set what changed; for a weight update first `--state updating`, then `--state serving`',
  arguments: { '[name]': defaulted(text('name of the policy'), DEFAULT_POLICY) },
  options: {
    '--policy-version <name>': text('the weights, as the trainer names them'),
    '--endpoint <url>': list('OpenAI-compatible endpoint (repeatable); replaces all'),
    '--model <name>': text('model that runs of this policy ask for, such as the LoRA adapter of the version'),
    '--state <state>': choice(
      'no timeout runs unless it is serving; updating and asleep get no requests',
      PolicyState.options,
    ),
    ...FARM,
  },
  example: 'swefarm policy set main --policy-version step-100 --state serving',
  async run(o, { name }) {
    const { policyVersion: version, endpoint: endpoints, model, state } = o;
    const change = readChange(name, { version, endpoints, model, state });
    await using farm = await openFarmPatiently(producerConfig(o));
    const record = await farm.policies.set(name, change);
    await print(process.stdout.isTTY ? line(record) : JSON.stringify(record));
  },
});

const show = command({
  description: 'list policies with their endpoints, as workers see them',
  arguments: { '[name]': 'name of a policy; default: all' },
  options: { '--json': flag('print JSON (the default in a pipe)'), ...FARM },
  example: 'swefarm policy show --json',
  async run(o, { name }) {
    await using farm = await openFarm(producerConfig(o), 'producer');
    const shown = await readAll(farm, name);
    const human = process.stdout.isTTY && !o.json;
    await print(human ? describe(shown) : JSON.stringify(shown));
  },
});

const remove = command({
  description: 'remove a policy; runs that follow it continue with their own endpoints',
  arguments: { '<name>': 'name of the policy' },
  options: FARM,
  example: 'swefarm policy remove main',
  async run(o, { name }) {
    await using farm = await openFarmPatiently(producerConfig(o));
    await farm.policies.remove(name);
  },
});

export const policy = commands({ set, show, remove });

function readChange(name: string, change: { [Key in keyof PolicyChange]: unknown }): PolicyChange {
  if (!PolicyName.safeParse(name).success) {
    throw new UsageError(`policy name "${name}": expected letters, digits, dot, - and _, at most 64`);
  }
  const read = PolicyChange.safeParse(change);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  if (issue?.path.length === 0)
    throw new UsageError('policy set: give what changed: --policy-version, --endpoint, --model or --state');
  throw new UsageError(`policy set: ${issue?.path.join('.')}: ${issue?.message}`);
}

type Shown = PolicyRecord & { seen: (EndpointView & { worker: string })[] };

async function readAll(farm: Farm, name: string | undefined): Promise<Shown[]> {
  const records = await (name === undefined ? farm.policies.list() : farm.policies.get([name]));
  if (name !== undefined && records.length === 0) {
    throw new UsageError(`policy ${name}: not at ${farm.address}; swefarm policy show lists all`);
  }
  const reports = await farm.policies.reports();
  const views = [...reports].flatMap(([worker, list]) => list.map((view) => ({ worker, ...view })));
  return records.map((record) => ({
    ...record,
    seen: views.filter(({ url }) => record.endpoints.length === 0 || record.endpoints.includes(url)),
  }));
}

const line = ({ name, state, version, endpoints, model, changed_at }: PolicyRecord): string =>
  `${name}: ${state}, version ${version ?? 'unknown'}, ${model === null ? '' : `model ${model}, `}${endpoints.length || 'no'} endpoints of its own, since ${new Date(changed_at).toISOString()}`;

function describe(shown: readonly Shown[]): string {
  if (shown.length === 0) return 'no trainer has registered a policy (swefarm policy set)';
  return shown
    .map((one) => `${line(one)}\n${one.seen.length === 0 ? '  no worker uses it now' : endpointTable(one)}`)
    .join('\n\n');
}

const endpointTable = ({ seen }: Shown): string =>
  tableOf(seen, [
    left('endpoint', ({ url }) => terminalSafe(url)),
    left('worker', ({ worker }) => worker),
    left('rollouts', ({ load }) => String(load)),
    left('state', ({ aside_seconds: aside, reason }) =>
      aside > 0 ? `set aside for ${aside.toFixed(0)} s: ${terminalSafe(reason ?? '')}` : 'in use',
    ),
  ]);
