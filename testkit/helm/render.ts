/** Renders the chart for tests, with a Helm that testkit/kubernetes/tools.sh has built. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

const ROOT = resolve(import.meta.dirname, '../..');
export const CHART = join(ROOT, 'helm/swefarm');
const SETS = join(import.meta.dirname, 'sets');
const TOOLS = join(ROOT, 'testkit/kubernetes/tools.sh');

/** Returns the folder of the programs of these parts; null when a part was not built on this machine. */
export function toolsOf(...parts: string[]): string | null {
  const { status, stdout } = spawnSync('bash', [TOOLS, '--cached', ...parts], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

export const NO_TOOLS =
  'Helm or Kubernetes is not built on this machine: npm run ci:kubernetes builds it and runs this';

export const setNames = (): string[] => readdirSync(SETS).map((name) => name.replace(/\.yaml$/, ''));
export const setPath = (name: string): string => join(SETS, `${name}.yaml`);

export type Resource = {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: whatever Kubernetes has
  spec?: any;
  automountServiceAccountToken?: boolean;
};

/** Without this option, a Helm that is built from its module assumes a very old cluster. */
const VERSION = ['--kube-version', 'v1.33.0'];

/** Renders the chart to YAML. Replaces generated secrets with DRAWN. */
export function rendered(bin: string, values: readonly string[], more: readonly string[] = VERSION): string {
  const args = [
    'template',
    'farm',
    CHART,
    '--namespace',
    'rl',
    ...values.flatMap((path) => ['-f', path]),
    ...more,
  ];
  const text = execFileSync(join(bin, 'helm'), args, {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return text.replace(/^( {2}(?:password|token): )\S{40,}$/gm, '$1DRAWN');
}

export const resourcesOf = (text: string): Resource[] =>
  parseAllDocuments(text).flatMap((document) => {
    const one = document.toJSON() as Resource | null;
    return one === null ? [] : [one];
  });

/** Returns Helm's error for these values; empty when Helm accepts them. */
export function refusal(bin: string, ...settings: string[]): string {
  const args = ['template', 'farm', CHART, ...VERSION, ...settings.flatMap((one) => ['--set-json', one])];
  const { status, stderr } = spawnSync(join(bin, 'helm'), args, { encoding: 'utf8' });
  return status === 0 ? '' : stderr;
}
