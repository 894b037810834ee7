/** How the tests of a repository are run and read at a version: from the row itself, else from data/specs.json. */
import { type Instance, SwefarmError } from '@swefarm/shared';
import table from '../../data/specs.json' with { type: 'json' };
import type { GraderName } from './graders.ts';

export type Language = 'py' | 'js' | 'c' | 'go' | 'java' | 'php' | 'rb' | 'rs';

export type Spec = {
  language: Language;
  /** Command lines; for Python exactly one, to which the directives are appended. */
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

/** The table that a harness looks up; the fork uses lower-case names. */
export type TableName = keyof Tables;

/**
 * Fields of the row override the table, one by one; a row with its own test command needs no entry in the table.
 *
 * @throws SwefarmError `instance_invalid` when neither the row nor the table says how to test it
 */
export function specOf(instance: Instance, tableName: TableName): Spec {
  const key = tableName === 'swegym' ? instance.repo.toLowerCase() : instance.repo;
  const repos = TABLES[tableName];
  const repo = Object.hasOwn(repos, key) ? repos[key] : undefined;
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

/** 5.0.2 grades these repositories by failures alone, whatever the older table says. */
const LATEST_FAIL_ONLY = new Set([
  'chartjs/Chart.js',
  'processing/p5.js',
  'markedjs/marked',
  'bpmn-io/bpmn-js',
  'openlayers/openlayers',
  'eslint/eslint',
]);

/** How to judge the outcomes of an instance: by its row, else by its repository. */
export function evalTypeOf(instance: Instance, grader: GraderName): Spec['evalType'] {
  if (instance.eval_type !== undefined) return instance.eval_type;
  if (grader === 'swegym') return 'pass_and_fail';
  if (grader === 'swebench-5.0.2') return LATEST_FAIL_ONLY.has(instance.repo) ? 'fail_only' : 'pass_and_fail';
  const repos = TABLES.swebench;
  const repo = Object.hasOwn(repos, instance.repo) ? repos[instance.repo] : undefined;
  return repo?.eval_type ?? 'pass_and_fail';
}

/** Repositories in the table. */
export const knownRepos = (tableName: TableName): string[] => Object.keys(TABLES[tableName]);

/** The versions of a repository for which the table has commands; none when it lacks the repository. */
export function knownVersions(tableName: TableName, repo: string): string[] {
  const key = tableName === 'swegym' ? repo.toLowerCase() : repo;
  const repos = TABLES[tableName];
  return Object.hasOwn(repos, key) ? (repos[key]?.recipes.flatMap((recipe) => recipe.versions) ?? []) : [];
}
