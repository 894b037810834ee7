/** `swefarm agents`: installs, lists and checks agents that come as programs, and makes their lock files. */
import {
  type Bundle,
  checkStart,
  findBundle,
  installCard,
  isIntact,
  listBundles,
  readCard,
  relockCard,
  shippedCardPath,
  shippedCards,
} from '@swefarm/agents';
import { type AgentCard, UsageError } from '@swefarm/shared';
import { renderTable } from '@swefarm/trajectories';
import { command, commands, flag, group, text } from './declare.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { AGENTS_OPTIONS, producerConfig } from './options.ts';
import { listenForStop } from './stop.ts';
import { print, printStatus } from './terminal.ts';

const NAMES = 'agents that come with swefarm, or paths of cards';

/** Returns the path of a card: a name of a shipped card has neither a slash nor a dot. */
const cardPath = (name: string): string => (/[/.]/.test(name) ? name : shippedCardPath(name));
const mega = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

const install = command({
  description: 'fetch the programs of agents, check them against their locks, and install them on this node',
  arguments: { '<agents...>': NAMES },
  options: {
    '--source <folder>': text(
      'checkout of an agent that no registry has; or the folder of the programs of a card without lock.json',
    ),
    '--again': flag('install again what is installed, for example because it is damaged'),
    ...AGENTS_OPTIONS,
  },
  example: 'swefarm agents install codex claude-code',
  async run(o, { agents: names }) {
    const { draining: signal } = listenForStop(() => printStatus('\nswefarm: stopping'));
    const { agents_dir: dir } = producerConfig(o);
    if (o.source !== undefined && names.length > 1)
      throw new UsageError('--source is the folder of one agent: install one at a time');
    // All cards are read first, so that a mistyped name installs nothing.
    const paths = names.map(cardPath);
    for (const path of paths) readCard(path);
    for (const [index, path] of paths.entries()) {
      const log = (line: string) => printStatus(`${names[index]}: ${line}`);
      const options = { source: o.source ?? null, again: o.again, signal, log };
      const { card, bundle, isNew } = await installCard(dir, path, options);
      const { version, bytes } = bundle.manifest;
      log(`${isNew ? 'installed' : 'is already installed'}: ${version}, ${mega(bytes)}, ${bundle.folder}`);
      const started = await checkStart(card, bundle, { signal });
      // The images of instances can have what this machine lacks.
      if (started.state === 'fails') log(`does not start on this machine: ${started.why}`);
    }
  },
});

type Row = {
  name: string;
  version: string;
  /** Path of the card; null: a bundle without a known card. */
  card: string | null;
  description: string;
  installed: { folder: string; digest: string; bytes: number; version: string } | null;
  needs: AgentCard['needs'] | null;
  dialects: AgentCard['api']['dialects'];
  options: Record<string, { default: string | number | boolean; help: string }>;
};

const list = command({
  description: 'list the agents that come with swefarm, those of the given cards, and what is installed',
  arguments: { '[cards...]': 'paths of cards of your own' },
  options: { ...group('Output:', { '--json': flag('print one JSON object per agent') }), ...AGENTS_OPTIONS },
  example: 'swefarm agents list',
  async run(o, { cards = [] }) {
    const { agents_dir: dir } = producerConfig(o);
    const rows = await rowsOf(dir, [...shippedCards().map(shippedCardPath), ...cards]);
    if (o.json) for (const row of rows) await print(JSON.stringify(row));
    else await print(render(rows));
  },
});

async function rowsOf(dir: string, paths: readonly string[]): Promise<Row[]> {
  const rows = await Promise.all(
    paths.map(async (path): Promise<Row> => {
      const card = readCard(path);
      const { name, version, description, needs, bundle } = card;
      const found = await findBundle(dir, bundle.name, bundle.lock);
      const options = Object.entries(card.options).map(([key, { default: value, help }]) => [
        key,
        { default: value, help },
      ]);
      return {
        ...{ name, version, card: path, description, needs, dialects: card.api.dialects },
        installed: found && installedOf(found),
        options: Object.fromEntries(options),
      };
    }),
  );
  const known = new Set(rows.flatMap(({ installed }) => installed?.folder ?? []));
  const others = (await listBundles(dir)).filter(({ folder }) => !known.has(folder));
  return [
    ...rows,
    ...others.map(
      (bundle): Row => ({
        ...{
          name: bundle.manifest.name,
          version: bundle.manifest.version,
          card: null,
          dialects: [],
          options: {},
        },
        ...{
          description: 'a bundle of another card or version',
          needs: null,
          installed: installedOf(bundle),
        },
      }),
    ),
  ];
}

const installedOf = ({ folder, manifest: { digest, bytes, version } }: Bundle) => ({
  ...{ folder, digest, bytes, version },
});

function render(rows: readonly Row[]): string {
  const table = renderTable(
    [
      ...[
        { name: 'AGENT' },
        { name: 'VERSION' },
        { name: 'INSTALLED' },
        { name: 'SIZE', align: 'right' as const },
      ],
      ...[{ name: 'DIGEST' }, { name: 'API' }, { name: 'NEEDS' }],
    ],
    rows.map(({ name, version, installed, needs, dialects }) => [
      ...[name, version, installed ? 'yes' : 'no', installed ? mega(installed.bytes) : ''],
      ...[installed?.digest.slice(0, 12) ?? '', dialects.join(' '), needs ? describeNeeds(needs) : ''],
    ]),
  );
  const options = rows.flatMap(({ name, options: own }) =>
    Object.entries(own).map(([key, { default: value, help }]) => [name, `${key}=${value}`, help]),
  );
  const shown = renderTable([{ name: 'AGENT' }, { name: 'OPTION' }, { name: 'MEANING' }], options);
  return options.length === 0 ? table : `${table}\n\n${shown}`;
}

const describeNeeds = ({ libc, commands: programs, memory_mib: memory }: AgentCard['needs']): string =>
  [...(libc === 'none' ? [] : [libc]), ...programs, `${memory} MiB`].join(', ');

const check = command({
  description: 'check that installed agents are unchanged and start',
  arguments: { '[agents...]': `${NAMES} (default: all that are installed)` },
  options: AGENTS_OPTIONS,
  example: 'swefarm agents check codex',
  notes: 'Exit code 10 if an agent is missing, damaged or does not start.\n',
  async run(o, { agents: names = [] }) {
    const { draining: signal } = listenForStop(() => printStatus('\nswefarm: stopping'));
    const { agents_dir: dir } = producerConfig(o);
    const rows: string[][] = [];
    for (const path of (names.length > 0 ? names : shippedCards()).map(cardPath)) {
      const card = readCard(path);
      const bundle = await findBundle(dir, card.bundle.name, card.bundle.lock);
      if (bundle || names.length > 0)
        rows.push([card.name, card.version, ...(await stateOf(card, bundle, signal))]);
    }
    if (rows.length === 0)
      printStatus(`no agent is installed in ${dir}; install one with: swefarm agents install NAME`);
    await print(
      renderTable([{ name: 'AGENT' }, { name: 'VERSION' }, { name: 'STATE' }, { name: 'DETAIL' }], rows),
    );
    const code: ExitCode = rows.every(([, , state]) => state === 'ok') ? EXIT.allJudged : EXIT.someNotJudged;
    return code;
  },
});

async function stateOf(
  card: AgentCard,
  bundle: Bundle | null,
  signal: AbortSignal,
): Promise<[string, string]> {
  if (!bundle) return ['missing', `install it with: swefarm agents install ${card.name}`];
  if (!(await isIntact(bundle, signal)))
    return ['damaged', `${bundle.folder}; repair it with: swefarm agents install --again ${card.name}`];
  const started = await checkStart(card, bundle, { signal });
  if (started.state === 'starts') return ['ok', `${started.output} (${(started.ms / 1000).toFixed(1)} s)`];
  return [
    started.state === 'fails' ? 'broken' : 'ok',
    `${started.state === 'fails' ? '' : 'not started: '}${started.why}`,
  ];
}

const lock = command({
  description: 'make the lock file of a card again: lock.json beside the card',
  arguments: { '<agent>': 'agent that comes with swefarm, or path of a card' },
  options: {
    '--agent-version <version>': text('version of the agent (default: the version of the lock)'),
    '--source <folder>': text('checkout of an agent that no registry has'),
  },
  example: 'swefarm agents lock ./my-agent/card.yaml --agent-version 1.2.0',
  async run(o, { agent }) {
    const { draining: signal } = listenForStop(() => printStatus('\nswefarm: stopping'));
    const options = { version: o.agentVersion ?? null, source: o.source ?? null, signal };
    printStatus(`wrote ${await relockCard(cardPath(agent), options)}`);
  },
});

export const agents = commands({ install, list, check, lock });
