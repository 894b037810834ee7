/** Finds how the tests of a repository run at a version: from the row, or else from data/specs.json. */
import { type Instance, SwefarmError } from '@swefarm/shared';
import table from '../../data/specs.json' with { type: 'json' };
import type { GraderName } from './graders.ts';

export type Language = 'py' | 'js' | 'c' | 'go' | 'java' | 'php' | 'rb' | 'rs';

export type Spec = {
  language: Language;
  /** For Python, the script appends the names of test files to the last command. */
  testCommands: string[];
  install: string | null;
  evalCommands: string[];
  build: string[];
  parser: string;
  evalType: 'pass_and_fail' | 'fail_only';
};

type Recipe = {
  versions: string[];
  test_cmd: string | string[];
  install?: string;
  eval_commands?: string[];
  build?: string[];
};
type Repo = { ext: Language; log_parser: string; eval_type?: 'fail_only'; recipes: Recipe[] };
type Tables = Record<'swebench' | 'swegym', Record<string, Repo>>;

const TABLES = table as unknown as Tables;

type TableName = keyof Tables;

/** The table of SWE-Gym's fork of swebench has repository names in lower case. */
function repoIn(tableName: TableName, name: string): Repo | undefined {
  const key = tableName === 'swegym' ? name.toLowerCase() : name;
  const repos = TABLES[tableName];
  return Object.hasOwn(repos, key) ? repos[key] : undefined;
}

/**
 * Returns how the tests of an instance run. Fields of a row override the table. A row with a test command needs no entry in it.
 *
 * @throws SwefarmError `instance_invalid` if the row has no test command and no eval_script, and the table has no command
 */
export function specOf(instance: Instance, tableName: TableName): Spec {
  const repo = repoIn(tableName, instance.repo);
  const recipe = repo?.recipes.find((candidate) => candidate.versions.includes(instance.version));
  const command = instance.test_cmd ?? recipe?.test_cmd;
  if (command === undefined && instance.eval_script === undefined) {
    throw new SwefarmError(
      'instance_invalid',
      `${instance.instance_id}: ${missing(instance, repo, tableName)}`,
    );
  }
  return {
    language: repo?.ext ?? 'py',
    testCommands: typeof command === 'string' ? [command] : (command ?? []),
    install: instance.install ?? recipe?.install ?? null,
    evalCommands: recipe?.eval_commands ?? [],
    build: recipe?.build ?? [],
    parser: instance.log_parser ?? repo?.log_parser ?? 'pytest',
    evalType: instance.eval_type ?? repo?.eval_type ?? 'pass_and_fail',
  };
}

function missing(instance: Instance, repo: Repo | undefined, tableName: TableName): string {
  const remedy = 'give the row a test_cmd (and log_parser), or an eval_script';
  if (!repo) {
    const other = tableName === 'swebench' ? 'swegym' : 'swebench';
    const elsewhere = Object.hasOwn(TABLES[other], instance.repo.toLowerCase());
    const hint = elsewhere ? `; the ${other} table has it: choose that grader` : '';
    return `no test command is known for repo "${instance.repo}" in the ${tableName} table; ${remedy}${hint}`;
  }
  const versions = repo.recipes.flatMap((recipe) => recipe.versions);
  const known = versions.length > 12 ? `${versions.slice(0, 12).join(', ')}, …` : versions.join(', ');
  return `version "${instance.version}" of ${instance.repo} is not in the ${tableName} table (known: ${known}); ${remedy}`;
}

/** Repositories that swebench 5.0.2 grades by failed tests only. */
const LATEST_FAIL_ONLY = new Set([
  'chartjs/Chart.js',
  'processing/p5.js',
  'markedjs/marked',
  'bpmn-io/bpmn-js',
  'openlayers/openlayers',
  'eslint/eslint',
]);

export function evalTypeOf(instance: Instance, grader: GraderName): Spec['evalType'] {
  if (instance.eval_type !== undefined) return instance.eval_type;
  if (grader === 'swegym') return 'pass_and_fail';
  if (grader === 'swebench-5.0.2') return LATEST_FAIL_ONLY.has(instance.repo) ? 'fail_only' : 'pass_and_fail';
  return repoIn('swebench', instance.repo)?.eval_type ?? 'pass_and_fail';
}

export const knownRepos = (tableName: TableName): string[] => Object.keys(TABLES[tableName]);

export const knownVersions = (tableName: TableName, repo: string): string[] =>
  repoIn(tableName, repo)?.recipes.flatMap((recipe) => recipe.versions) ?? [];
