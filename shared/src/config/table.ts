/** The table of every configuration key, as Markdown: `node shared/src/config/table.ts > docs/configuration.md`. */
import { COMMON_KEYS, type ConfigKey, envName, flagName, PRODUCER_KEYS, WORKER_KEYS } from './keys.ts';
import { loadConfig } from './load.ts';

const INTRODUCTION = `# Configuration

A key is set in a file (YAML or JSON, \`--config FILE\` or \`SWEFARM_CONFIG\`), in the environment, or as a flag; later ones win. Unknown keys and unknown
\`SWEFARM_…\` variables are errors. Do not give secrets as flags, which every user of the machine can read. Printed configurations mask secrets.

This page is generated from \`shared/src/config/keys.ts\`: \`npm run docs:configuration\`.
`;

type Keys = Readonly<Record<string, ConfigKey<unknown>>>;

export function configurationPage(): string {
  const sections: [string, Keys][] = [
    ['Producer and worker', COMMON_KEYS],
    ['Worker', WORKER_KEYS],
    ['Producer', PRODUCER_KEYS],
  ];
  return [INTRODUCTION, ...sections.map(([title, keys]) => `## ${title}\n\n${table(keys)}\n`)].join('\n');
}

function table(keys: Keys): string {
  const rows = Object.entries(keys).map(([name, key]) => {
    const other = (key.otherEnv ?? []).map((variable) => ` (else \`${variable}\`)`).join('');
    return [
      `\`${name}\``,
      `\`${envName(name)}\`${other}`,
      `\`${flagName(name)}\``,
      key.shown || '–',
      key.doc,
    ];
  });
  const head = ['key in the file', 'environment', 'flag', 'default', 'meaning'];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

if (import.meta.main) {
  // Checks the defaults by their schemas.
  loadConfig('worker', { env: {} });
  process.stdout.write(configurationPage());
}
